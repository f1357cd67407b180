"""A terminal in the project: its folder, its program, its environment."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from pegboard import App, AppOptions, InvalidInputError, PermissionDeniedError, hookimpl
from pegboard_plugins.server.shells import TerminalOrder, open_terminal, shell

LIMIT_S = 30.0


class Greeting:
    """A plugin that adds to the environment of processes."""

    @hookimpl
    async def shell_env(self, env: Mapping[str, str]) -> Mapping[str, str]:
        return {**env, "GREETING": "hi", "SHELL": "/bin/sh"}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    names = ("config", "data", "state", "cache")
    options = AppOptions(
        plugins=(Greeting(),),
        installed=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OPENAI_API_KEY": "secret"},
        **{f"{name}_dir": tmp_path / name for name in names},
    )
    project = tmp_path / "project"
    (project / "inside").mkdir(parents=True)
    (project / "out").symlink_to("/etc")
    async with App.open(project, options) as opened:
        yield opened


async def shown(app: App, order: TerminalOrder) -> str:
    heard = bytearray()
    terminal = await open_terminal(app, order, heard.extend)
    async with asyncio.timeout(LIMIT_S):
        await terminal.exited
    await terminal.aclose()
    return heard.decode()


async def test_the_environment_is_that_of_processes_without_keys(app: App) -> None:
    order = TerminalOrder(command="env", env={"MINE": "too"})

    lines = (await shown(app, order)).splitlines()

    assert {"GREETING=hi", "MINE=too", "TERM=xterm-256color"} <= set(lines)
    assert not any("secret" in line for line in lines)


async def test_it_begins_in_the_folder_that_is_named(app: App) -> None:
    project = app.workspace.directory

    assert await shown(app, TerminalOrder(command="pwd")) == f"{project}\r\n"
    inside = await shown(app, TerminalOrder(command="pwd", cwd="inside"))
    assert inside == f"{project}/inside\r\n"


@pytest.mark.parametrize("cwd", ["/", "..", "out"])
async def test_it_begins_nowhere_else(app: App, cwd: str) -> None:
    with pytest.raises(PermissionDeniedError, match="outside of the project"):
        await open_terminal(app, TerminalOrder(cwd=cwd), bytearray().extend)


@pytest.mark.parametrize("cwd", ["none", "a\0b"])
async def test_a_folder_that_is_not_there_is_named(app: App, cwd: str) -> None:
    with pytest.raises(InvalidInputError):
        await open_terminal(app, TerminalOrder(cwd=cwd), bytearray().extend)


async def test_without_a_command_it_is_the_user_s_shell(app: App) -> None:
    terminal = await open_terminal(app, TerminalOrder(), bytearray().extend)

    await terminal.aclose()

    assert terminal.command == ("/bin/sh",)


def test_a_shell_is_found_in_any_case() -> None:
    assert shell({"SHELL": "/bin/sh"}) == "/bin/sh"
    assert shell({"SHELL": "/no/such/shell"}) in {"/bin/bash", "/bin/sh"}
    assert shell({}) in {"/bin/bash", "/bin/sh"}
