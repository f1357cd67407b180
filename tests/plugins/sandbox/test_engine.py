"""Runs of the whole engine in the built-in sandboxes."""

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pegboard import App, ToolContext, hookimpl, tool
from pegboard.errors import ConfigError
from pegboard.schema.part import Completed, Failed
from pegboard_plugins import audit, guard, rules, sandbox, secrets
from pegboard_plugins import bash as bash_plugin
from pegboard_plugins import glob as glob_plugin
from pegboard_plugins import grep as grep_plugin
from pegboard_plugins import lsp as lsp_plugin
from pegboard_plugins import webfetch as webfetch_plugin
from pegboard_plugins.sandbox import Sandbox
from pegboard_plugins.shared.frontend import explain
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of
from support.processes.enclosed import BOXES, KINDS, SECRET
from support.processes.processes import remaining
from support.tools.tool_context import said
from support.wire.web_server import page, serving

SERVER = Path(__file__).parents[2] / "support/tools/language_server.py"


@pytest.fixture(params=BOXES)
def box(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Only:
    """Brings one of the built-in sandboxes."""

    def __init__(self, box: str) -> None:
        self._box = box

    @hookimpl
    async def register_sandboxes(self) -> list[Sandbox]:
        return [KINDS[self._box]()]


@tool
async def words(context: ToolContext, command: str) -> str:
    """Run a command without a word.

    Args:
        command: what to run.
    """
    result = await context.run(["bash", "-c", command])
    return f"{result.output}{result.exit_code}"


@asynccontextmanager
async def engine(
    folder: Path,
    box: str,
    provider: Played,
    *plugins: object,
    config: Mapping[str, object] | None = None,
    **options: object,
) -> AsyncIterator[App]:
    """An App with one sandbox; skipped where the machine does not have it."""
    said = {"model": "played/m", "sandbox": "workspace", **(config or {})}
    try:
        context = opened(folder, provider, sandbox, Only(box), *plugins, config=said, **options)
        app = await context.__aenter__()
    except ConfigError as error:
        pytest.skip(str(error))
    try:
        yield app
    finally:
        await context.__aexit__(None, None, None)


async def test_a_run_of_the_engine_stays_inside(tmp_path: Path, box: str) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text(SECRET)
    script = (
        "echo in > sub/made; echo out > ../made; cat ~/.ssh/id_rsa; mkdir -p tool;"
        " echo x > tool/pwn.py; cat /proc/$PPID/environ; env"
    )
    provider = Played(calls(call("words", json.dumps({"command": script}))), text("done"))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PLAYED_KEY": SECRET}

    async with engine(tmp_path, box, provider, ToolsPlugin(words), env=env) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Completed), part.state
    assert part.state.metadata["sandbox"] == "workspace"
    assert SECRET not in part.state.output
    assert (project / "sub" / "made").read_text() == "in\n"
    assert not (tmp_path / "made").exists()
    assert [path.name for path in project.iterdir()] == ["sub"]


async def test_a_language_server_answers_from_inside(tmp_path: Path, box: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.x").write_text("one\n")
    server = tmp_path / "server"  # the tests may lie where a sandbox shows nothing
    server.write_text(f"#!{sys.executable}\n{SERVER.read_text()}")
    server.chmod(0o755)
    arguments = {"operation": "hover", "filePath": "a.x", "line": 1, "character": 1}
    provider = Played(calls(call("lsp", json.dumps(arguments))), text("done"))
    config = {"lsp": {"own": {"command": [str(server), "none"], "extensions": [".x"]}}}

    async with engine(tmp_path, box, provider, lsp_plugin, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Completed), part.state
    assert "at " in part.state.output
    assert part.state.metadata["sandbox"] == "workspace"
    assert remaining(str(server)) == []


async def test_a_process_sees_the_long_outputs_of_its_own_session_alone(
    tmp_path: Path, box: str
) -> None:
    look = f"cat {tmp_path}/data/tool-output/*/* {tmp_path}/data/tool-output/* | tail -2"
    (tmp_path / "project").mkdir()
    provider = Played(
        calls(call("words", json.dumps({"command": "seq 1 30000 | sed 's/^/OF-THE-FIRST /'"}))),
        calls(call("words", json.dumps({"command": look}))),
        text("done"),
        calls(call("words", json.dumps({"command": look}))),
        text("done"),
    )

    async with engine(tmp_path, box, provider, ToolsPlugin(words)) as app:
        first, second = await app.create_session(), await app.create_session()
        await app.prompt(first.id, HI)
        await app.prompt(second.id, HI)
        own = str(tools_of(await app.list_turns(first.id))[1].state)
        strange = str(tools_of(await app.list_turns(second.id))[0].state)

    assert "OF-THE-FIRST 30000" in own
    assert "OF-THE-FIRST" not in strange


async def test_what_pegboard_keeps_is_hidden_in_the_first_run_of_all(
    tmp_path: Path, box: str
) -> None:
    (tmp_path / "project").mkdir()
    look = {"command": f"cat {tmp_path}/state/* {tmp_path}/config/* {tmp_path}/cache/*"}
    provider = Played(calls(call("words", json.dumps(look))), text("done"))

    async with engine(tmp_path, box, provider, ToolsPlugin(words), audit) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert "words" in (tmp_path / "state" / "audit.jsonl").read_text()
    assert '"kind"' not in str(part.state)


async def test_a_key_that_comes_while_an_app_is_open_is_hidden(tmp_path: Path, box: str) -> None:
    (tmp_path / "project").mkdir()
    look = json.dumps({"command": "cat ~/.netrc"})
    provider = Played(calls(call("words", look)), text("done"))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    async with engine(tmp_path, box, provider, ToolsPlugin(words), env=env) as app:
        (tmp_path / ".netrc").write_text(SECRET)
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert SECRET not in str(part.state)


async def verdicts(app: App, *commands: str) -> list[str]:
    return [(await explain(app, "bash", {"command": each})).verdict.action for each in commands]


async def test_commands_that_stay_inside_run_unasked_if_the_user_wants_it(tmp_path: Path) -> None:
    bash = {"*": "ask", "git push *": "ask", "rm *": "deny"}
    config = {
        "sandbox_allow_commands": True,
        "permission": {"bash": bash, "edit": "ask", "external_directory": "allow"},
    }
    plugins = (bash_plugin, rules, guard, secrets)
    inside = ("ls", "python3 x.py", "echo x > made", "make | tee log")
    asked = ("git push origin", "ls /etc", "$CMD", "cat .env", "echo x > .git/hooks/a")
    denied = ("rm x", "ls; rm -rf .git")
    provider = Played(calls(call("bash", '{"command": "echo x > made; cat made"}')), text("done"))

    async with engine(
        tmp_path, "bubblewrap", provider, *plugins, config=config, allow=False
    ) as app:
        told = [await verdicts(app, *each) for each in (inside, asked, denied)]
        explained = await explain(app, "bash", {"command": "ls"})
        plain = await explain(app, "bash", {"command": "rm x"})
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert told == [["allow"] * len(inside), ["ask"] * len(asked), ["deny", "deny"]]
    assert explained.verdict.source == "sandbox"
    assert explained.sandbox == (
        "workspace (bubblewrap, no network): it answers what would be asked"
    )
    assert plain.sandbox.endswith(": it does not change the verdict")
    assert isinstance(part.state, Completed), part.state
    assert said(part.state.output) == "x"


async def test_without_the_setting_a_sandbox_answers_nothing(tmp_path: Path) -> None:
    config = {"permission": {"bash": "ask"}}
    provider = Played(calls(call("bash", '{"command": "ls"}')), text("done"))

    plugins = (bash_plugin, rules)
    async with engine(
        tmp_path, "bubblewrap", provider, *plugins, config=config, allow=False
    ) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Failed)


async def test_at_the_strict_level_searches_and_pages_go_on(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("needle\n")
    options = {"plugins": {"webfetch": {"options": {"allow_private": True}}}}
    plugins = (grep_plugin, glob_plugin, webfetch_plugin)
    async with serving({"/": page(b"<h1>Title</h1>")}) as web:
        provider = Played(
            calls(
                call("grep", '{"pattern": "needle"}', call_id="c1"),
                call("glob", '{"pattern": "*.txt"}', call_id="c2"),
                call(
                    "webfetch", json.dumps({"url": web.url(), "format": "markdown"}), call_id="c3"
                ),
            ),
            text("done"),
        )
        said = {"sandbox": "strict", **options}
        async with engine(tmp_path, "bubblewrap", provider, *plugins, config=said) as app:
            session = await app.create_session()
            await app.prompt(session.id, HI)
            parts = tools_of(await app.list_turns(session.id))

    found = [part.state for part in parts]
    assert [type(state) for state in found] == [Completed] * 3, found
    assert all(state.metadata["sandbox"] == "strict" for state in found)
    assert "a.txt" in str(found[0].output)
    assert "a.txt" in str(found[1].output)
    assert "Title" in str(found[2].output)
