"""Slash commands that are replaced while their App is open."""

from pathlib import Path

import pytest

from pegboard import hookimpl
from pegboard.errors import NotFoundError
from pegboard.schema.config import Command
from support.models.played import Played, opened, text


def command(name: str, template: str, **facts: object) -> Command:
    return Command(name=name, template=template, hints=(), **facts)  # type: ignore[arg-type]  # as given


class Greetings:
    """A plugin with one command of its own."""

    @hookimpl
    async def register_commands(self) -> tuple[Command, ...]:
        return (command("greet", "Good day"),)


class Farewells:
    """A later plugin with two commands."""

    @hookimpl
    async def register_commands(self) -> tuple[Command, ...]:
        return (command("bye", "Farewell"), command("wave", "Wave"))


async def test_replaced_commands_are_there_at_once_and_others_stay(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("done")), Greetings(), Farewells()) as app:
        app.replace_commands("Greetings", [command("hail", "Hail"), command("wave", "Wink")])

        found = {name: app.commands[name].template for name in ("hail", "wave", "bye")}
        assert found == {"hail": "Hail", "wave": "Wave", "bye": "Farewell"}  # the later plugin's
        assert "greet" not in app.commands

        app.replace_commands("Greetings", [])
        assert "hail" not in app.commands


async def test_a_replaced_document_takes_no_name_in_use(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("done")), Greetings(), Farewells()) as app:
        ours = [command("greet", "prompt", source="mcp"), command("s:ask", "Ask", source="mcp")]
        app.replace_commands("Farewells", ours)

        assert app.commands["greet"].template == "Good day"
        assert app.commands["s:ask"].source == "mcp"


async def test_commands_of_a_plugin_that_is_not_there_are_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("done")), Greetings()) as app:
        with pytest.raises(NotFoundError, match="Greetings"):
            app.replace_commands("Greeting", [])
