"""Who encloses processes, which ones, and who may say how tightly; the walls are a plugin's."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from pegboard import ToolContext, ToolError, hookimpl, tool
from pegboard.contract.tools import Tool
from pegboard.errors import ConfigError
from pegboard.paths import UserFolders
from pegboard.processes import Site
from pegboard.schema.config import Command, Config
from pegboard.schema.part import Completed
from pegboard.workspace import open_workspace
from pegboard_plugins import bash as bash_plugin
from pegboard_plugins import format as format_plugin
from pegboard_plugins import lsp as lsp_plugin
from pegboard_plugins import sandbox
from pegboard_plugins.edit import write_plugin
from pegboard_plugins.sandbox import SandboxPolicy
from pegboard_plugins.sandbox.bubblewrap import Bubblewrap
from pegboard_plugins.sandbox.enclosure import policy_of
from pegboard_plugins.shared.frontend import CommandOrder, ShellOrder, run_command, run_shell
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of
from support.plugins.config_place import Place

LANGUAGE_SERVER = Path(__file__).parents[2] / "support/tools/language_server.py"
SMALL = ("pegboard_plugins.sandbox", "pegboard_plugins.sandbox.hookspecs")
"""What is loaded where nothing is to be enclosed."""
SANDBOXED: Mapping[str, object] = {"model": "played/m", "sandbox": "workspace"}


class Marking:
    """A sandbox that holds nothing: it marks the environment, and counts what runs in it."""

    caveat = ""

    def __init__(self, name: str = "marking", why_not: str | None = None) -> None:
        self.name = name
        self.running = 0
        self.started: list[str] = []
        self.policy: SandboxPolicy | None = None
        self._why_not = why_not

    @hookimpl
    async def register_sandboxes(self) -> "list[Marking]":
        return [self]

    def why_not(self, policy: SandboxPolicy) -> str | None:
        self.policy = policy
        return self._why_not

    @contextmanager
    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> Iterator[Sequence[str]]:
        self.policy = policy
        self.running += 1
        self.started.append(Path(argv[0]).name)
        try:
            yield ("/usr/bin/env", f"WALLS={self.name}", *argv)
        finally:
            self.running -= 1


@tool
async def ask_the_shell(context: ToolContext) -> str:
    """Print the walls."""
    return (await context.run(["sh", "-c", "echo walls: $WALLS"])).output


@pytest.mark.fires("register_sandboxes", "register_encloser")
async def test_the_first_sandbox_that_can_hold_the_level_acts(tmp_path: Path) -> None:
    boxes = (Marking("first", "not here"), Marking("second"), Marking("third"))
    provider = Played(calls(call("ask_the_shell", "{}")), text("done"))

    plugins = (*boxes, ToolsPlugin(ask_the_shell))
    async with opened(tmp_path, provider, sandbox, *plugins, config=SANDBOXED) as app:
        described = app.enclosure.described
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert described == "workspace (second, no network)"
    assert isinstance(part.state, Completed)
    assert part.state.output == "walls: second\n"
    assert part.state.metadata["sandbox"] == "workspace"
    assert [box.started for box in boxes] == [[], ["sh"], []]
    assert boxes[1].policy
    assert not boxes[1].policy.temp.exists()


async def test_where_none_can_the_app_does_not_open_and_says_why(tmp_path: Path) -> None:
    box = Marking("paper", "it tears")

    with pytest.raises(ConfigError) as caught:
        async with opened(
            tmp_path, Played(), sandbox, box, config={**SANDBOXED, "sandbox": "strict"}
        ):
            pass

    assert caught.value.exit_code == 3
    assert str(caught.value) == (
        'sandbox: "strict" cannot be held here (paper: it tears): `apt-get install bubblewrap`'
        ' lets it be, sandbox = "off" does without'
    )
    assert box.policy
    assert not box.policy.temp.exists()


async def test_where_no_plugin_encloses_processes_the_app_does_not_open(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='no plugin encloses as "workspace"'):
        async with opened(tmp_path, Played(), config=SANDBOXED):
            pass


async def test_every_kind_of_process_runs_inside(tmp_path: Path) -> None:
    box = Marking()
    server = (sys.executable, str(LANGUAGE_SERVER), "none")
    config = {
        **SANDBOXED,
        "formatter": {"own": {"command": ["true", "$FILE"], "extensions": [".x"]}},
        "lsp": {"own": {"command": list(server), "extensions": [".x"]}},
    }
    provider = Played(
        calls(
            call("bash", '{"command": "echo a $WALLS"}', call_id="c1"),
            call("bash", '{"command": "sleep 60", "background": true}', call_id="c2"),
            call(
                "write", f'{{"filePath": "{tmp_path}/project/a.x", "content": "b"}}', call_id="c3"
            ),
        ),
        text("done"),
    )
    snippet = Snippet("!`echo b $WALLS`")
    plugins = (box, bash_plugin, write_plugin, format_plugin, lsp_plugin, snippet)
    async with opened(tmp_path, provider, sandbox, *plugins, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        shell = await run_shell(app, session.id, ShellOrder(command="echo c $WALLS"))
        await run_command(app, session.id, CommandOrder(name="snippet"))
        turns = await app.list_turns(session.id)
        states = [part.state for part in tools_of(turns)]

    assert [state.metadata["sandbox"] for state in states if isinstance(state, Completed)] == [
        "workspace"
    ] * 4
    assert "a marking" in str(states[0])
    assert "c marking" in str(shell.parts)
    assert "b marking" in str(turns)
    assert sorted(box.started) == sorted(["bash"] * 4 + ["true", Path(sys.executable).name])
    assert box.running == 0


class Snippet:
    """The slash command `snippet`."""

    def __init__(self, template: str) -> None:
        self._template = template

    @hookimpl
    async def register_commands(self) -> list[Command]:
        return [Command(name="snippet", template=self._template, hints=())]


async def test_a_program_or_a_folder_that_is_not_there_is_an_error_for_the_model(
    tmp_path: Path,
) -> None:
    async def missing(context: ToolContext, args: Mapping[str, object]) -> str:
        found = []
        for argv, cwd in ((["no-such-program"], None), (["true"], tmp_path / "gone")):
            with pytest.raises(ToolError) as caught:
                await context.run(argv, cwd=cwd)
            found.append(str(caught.value))
        return "\n".join(found)

    provider = Played(calls(call("missing", "{}")), text("done"))
    plugin = ToolsPlugin(Tool.raw("missing", "Try.", {"type": "object"}, missing))

    async with opened(tmp_path, provider, sandbox, Marking(), plugin, config=SANDBOXED) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Completed), part.state
    assert "no-such-program" in part.state.output
    assert "gone: there is no such directory" in part.state.output


class Loosening:
    """Takes the sandbox away, as far as it can."""

    @hookimpl
    async def config_load(self, config: Config) -> Config:
        return msgspec.structs.replace(
            config, sandbox="off", sandbox_network=True, sandbox_allow_commands=True
        )


async def test_no_plugin_makes_it_looser(tmp_path: Path) -> None:
    box = Marking()

    async with opened(tmp_path, Played(), sandbox, box, Loosening(), config=SANDBOXED) as app:
        assert app.config.sandbox == "workspace"
        assert not app.config.sandbox_allow_commands

    assert box.policy
    assert not box.policy.network


@pytest.mark.parametrize("trusted", [False, True])
async def test_a_project_can_only_tighten(tmp_path: Path, trusted: bool) -> None:
    place = Place(tmp_path)
    place.write(place.user / "pegboard.toml", 'sandbox = "workspace"\nsandbox_network = true\n')
    place.write(
        place.project / "pegboard.toml",
        'sandbox = "off"\nsandbox_allow_commands = true\nsandbox_network = false\n',
    )
    file = place.write(place.directory / "pegboard.toml", 'sandbox = "strict"\n')
    place.write(place.project / ".pegboard" / "pegboard.toml", "sandbox_network = true\n")

    loaded = await place.load(trusted=trusted)

    config = loaded.config
    assert (config.sandbox, config.sandbox_network, config.sandbox_allow_commands) == (
        *("strict", False, False),
    )
    assert loaded.sources["sandbox"] == str(file)
    assert loaded.untrusted == ()
    assert [line.rpartition(": ")[2] for line in loaded.warnings] == [
        *("sandbox_allow_commands", "sandbox", "sandbox_network"),
    ]


async def test_a_level_that_is_none_is_an_error_wherever_it_stands(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write(place.project / "pegboard.toml", 'sandbox = "tight"\n')

    with pytest.raises(ConfigError, match="sandbox"):
        await place.load()


def policy(place: Place, **facts: object) -> SandboxPolicy:
    folders = {name: place.home / name for name in ("config", "data", "state", "cache")}
    workspace = open_workspace(place.directory)
    made = policy_of(
        Site(
            config=Config(sandbox="workspace", **facts),
            workspace=workspace,
            places=UserFolders(**folders),
            home=place.home,
            private=tuple(folders.values()),
        )
    )
    made.temp.rmdir()
    return made


def test_what_runs_by_itself_is_protected_there_or_not(tmp_path: Path) -> None:
    place = Place(tmp_path)
    named = f'[submodule "lib"]\n\tpath = lib\n\tpath = {"x" * 300}\n{" " * 1_000_000}x\n'
    place.write(place.project / ".gitmodules", named)
    place.write(place.project / "lib" / ".git", "gitdir: ../.git/modules/lib\n")
    plugin = place.write(place.project / "house" / "rules.py", "")
    place.write(place.project / ".husky" / "pre-commit", "")

    found = policy(place, plugin_paths=(str(plugin), "/elsewhere/x.py", "x" * 300))

    names = {str(path.relative_to(place.project)) for path in found.protected}
    assert names == {
        *(".git", ".gitmodules", ".envrc", ".mcp.json", ".vscode", "tool", "sub/tool"),
        *(".pegboard", ".opencode", "pegboard.toml", "opencode.json", "opencode.jsonc"),
        *("sub/.pegboard", "sub/.opencode", "sub/pegboard.toml", "sub/opencode.json"),
        *("sub/opencode.jsonc", "lib/.git", "house/rules.py", ".husky"),
    }


def test_keys_and_what_pegboard_keeps_are_hidden(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.home / "data" / "tool-output").mkdir(parents=True)
    place.write(place.home / ".netrc", "")
    elsewhere = place.write(tmp_path / "elsewhere" / "id", "")
    (place.home / ".ssh").symlink_to(elsewhere.parent)

    found = policy(place)

    inside = {path for path in found.hidden if path.is_relative_to(tmp_path)}
    own = {place.home / name for name in ("config", "data", "state", "cache")}
    assert inside == {*own, place.home / ".netrc", elsewhere.parent}
    assert not any(path.is_relative_to(tmp_path) for path in found.visible)
    assert Path(sys.prefix).resolve() in found.visible


def test_a_project_around_the_home_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path)
    workspace = open_workspace(place.home)

    with pytest.raises(ConfigError, match="holds your home folder"):
        policy_of(
            Site(
                config=Config(sandbox="strict"),
                workspace=workspace,
                places=UserFolders(**dict.fromkeys(UserFolders.__struct_fields__, tmp_path)),
                home=place.home,
                private=(),
            )
        )


def test_where_it_is_off_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    code = f"""
import asyncio, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from pegboard import App, AppOptions

async def main():
    folder = Path({str(tmp_path)!r})
    places = {{f"{{name}}_dir": folder / name for name in ("config", "data", "state", "cache")}}
    async with App.open(folder, AppOptions(**places)) as app:
        print(app.config.sandbox)

asyncio.run(main())
print(*(name for name in sys.modules if "sandbox" in name or "enclosure" in name))
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}

    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )

    off, loaded = done.stdout.splitlines()
    assert (off, sorted(loaded.split())) == ("off", sorted(SMALL))


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for sockets, whose paths have at most 108 bytes (unix(7))."""
    with TemporaryDirectory() as folder:
        yield Path(folder).resolve()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is not installed")
def test_a_socket_that_is_gone_before_the_start_neither_stops_it_nor_leaves_a_file(
    short_path: Path,
) -> None:
    place = Place(short_path)
    found = policy(place)
    found.temp.mkdir()
    if why := Bubblewrap().why_not(found):
        pytest.skip(why)
    gone, there = place.project / "gone socket", place.project / "there"
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        for each, path in ((one, gone), (other, there)):
            each.bind(str(path))
            each.listen()
        line = "ls -A; test -S 'gone socket' || test -S there || echo hidden"
        with Bubblewrap().enclose(("/bin/sh", "-c", line), place.project, found) as command:
            gone.unlink()
            done = subprocess.run(command, capture_output=True, text=True, check=False)
    shutil.rmtree(found.temp)

    assert (done.returncode, done.stderr) == (0, "")
    assert "there" in done.stdout.split()
    assert "gone" not in done.stdout
    assert "hidden" in done.stdout.split()
    assert not gone.exists()
