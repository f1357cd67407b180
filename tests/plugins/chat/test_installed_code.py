"""`/reload` uses the code of installed plugins as it is on disk, or says what needs a restart."""

from pathlib import Path

import pytest

from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine

DICE = """
from pegboard import hookimpl
from pegboard.schema.config import Command
{more}

@hookimpl
def register_commands():
    return [Command(name="roll", template="say {says}", hints=(), description="{says}")]
"""
THREAD = """
import threading
from time import sleep


def wait():
    while True:
        sleep(60)


threading.Thread(target=wait, daemon=True).start()
"""


def install(site: Path, name: str, version: str, source: str) -> None:
    """The distribution with one module that is a plugin, as an installer writes it."""
    for old in site.glob(f"{name}-*.dist-info"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    facts = site / f"{name}-{version}.dist-info"
    facts.mkdir(parents=True)
    dashed = name.replace("_", "-")
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dashed}\nVersion: {version}\n")
    (facts / "entry_points.txt").write_text(f"[pegboard]\n{name} = {name}\n")
    (facts / "RECORD").write_text(f"{name}.py,,\n")
    (site / f"{name}.py").write_text(source)


@pytest.fixture
def site(pegboard: CommandLine, tmp_path: Path) -> Path:
    scripts(pegboard)
    pegboard.env["PYTHONPATH"] = str(tmp_path / "site")
    return tmp_path / "site"


async def test_an_installed_plugin_that_changed_is_imported_again(
    pegboard: CommandLine, site: Path
) -> None:
    install(site, "house_dice", "0.2", DICE.format(says="old", more=""))
    async with chat(pegboard, columns=120) as terminal:
        await terminal.say("/reload")
        await terminal.see("settings reloaded")
        assert "house-dice" not in terminal.everything

        install(site, "house_dice", "0.3", DICE.format(says="new dice", more="import json"))
        await terminal.say("/reload")
        await terminal.see("house-dice 0.3 is reloaded")
        await terminal.say("/roll")
        await terminal.see("You said: say new dice")

        install(site, "house_dice", "0.4", "def broken(:\n")
        await terminal.say("/reload")
        await terminal.see("not loaded: house_dice (")
        install(site, "house_dice", "0.4", DICE.format(says="whole again", more=""))
        await terminal.say("/reload")
        await terminal.until(lambda: terminal.everything.count("settings reloaded") == 4)
        await terminal.say("/roll")
        await terminal.see("You said: say whole again")


@pytest.mark.parametrize(
    ("more", "why"),
    [(THREAD, "a thread of it still runs"), ("import house_user", "house_user uses it")],
)
async def test_a_plugin_that_cannot_be_replaced_is_named_with_its_version(
    pegboard: CommandLine, site: Path, more: str, why: str
) -> None:
    install(site, "house_dice", "0.2", DICE.format(says="old", more=more))
    (site / "house_user.py").write_text("import house_dice\n")
    async with chat(pegboard, columns=120) as terminal:
        await terminal.say("/reload")  # by then the chat knows what it has imported
        await terminal.see("settings reloaded")
        install(site, "house_dice", "0.3", DICE.format(says="new dice", more=more))
        for times in (1, 2):
            await terminal.say("/reload")
            line = f"house-dice 0.3 changed on disk: {why}; restart the chat to use it"
            await terminal.until(lambda: terminal.everything.count(line) == times)  # noqa: B023 - awaited at once
        await terminal.say("/roll")
        await terminal.see("You said: say old")
