"""The examples of plugins do what they say, as a project's files or as a distribution's."""

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from docs.example_project import asked, config, project
from docs.pages import EXAMPLES, PAGES, blocks, links
from pegboard import ToolContext, hookimpl, tool
from pegboard.errors import ConfigError
from pegboard.providers import ModelRequest, Text
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.session import Verdict
from pegboard.testing import check_tools
from pegboard_plugins import read, websearch
from plugins.cli.commands import CommandLine
from support.models.played import HI, Played, ToolsPlugin, call, calls, text, texts, tools_of
from support.plugins.surface import PROMISED
from support.wire.served import model, served
from support.wire.streams_heard import heard, prompt, until

EXAMPLE_FILES = sorted(EXAMPLES.glob("*.py"))


def heard_by_model(request: ModelRequest) -> list[str]:
    return [
        part.text
        for message in request.messages
        for part in message.content
        if isinstance(part, Text)
    ]


@pytest.mark.parametrize("file", EXAMPLE_FILES, ids=lambda file: file.stem)
def test_an_example_uses_public_names_and_is_linked_from_a_page(file: Path) -> None:
    imported = {
        node.module
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    ours = {name for name in imported if name.startswith("pegboard")}

    allowed = {
        *PROMISED,
        *(f"pegboard_plugins.{name}" for name in ("auth", "chat", "sandbox", "web", "websearch")),
    }
    assert {name for name in ours - allowed if not name.startswith("pegboard.schema.")} == set()
    assert file in {(page.parent / link).resolve() for page in PAGES for link in links(page)}


def test_no_page_repeats_an_example() -> None:
    shown = {each for block in blocks("python") for each in functions(block.text)}
    here = {each for file in EXAMPLE_FILES for each in functions(file.read_text())}

    assert shown & here == set()


def functions(source: str) -> set[str]:
    """The code of each function that is more than one statement."""
    nodes = ast.walk(ast.parse(source))
    found = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {ast.unparse(node) for node in found if len(node.body) > 1}


async def test_tool(tmp_path: Path) -> None:
    wrong = call("roll", '{"sides": 6, "count": 101}', call_id="b")
    provider = Played(calls(call("roll", '{"sides": 1, "count": 3}'), wrong), text("Three."))

    async with project(tmp_path, "tool", provider) as app:
        rolled, refused = tools_of(await asked(app))
        findings = check_tools(app.tools.values())

    assert isinstance(rolled.state, Completed)
    assert (rolled.state.output, rolled.state.title) == ("3", "3d1")
    assert rolled.state.metadata["dice"] == [1, 1, 1]
    assert isinstance(refused.state, Failed)
    assert "1 to 100 dice" in refused.state.error
    assert findings == ()


async def test_file_tool(tmp_path: Path) -> None:
    words, other = tmp_path / "project" / "words.txt", tmp_path / "other.txt"
    words.parent.mkdir()
    words.write_bytes(b"pear\r\napple\r\npear\r\n")
    other.write_text("b\na\n")
    provider = Played(
        calls(call("sort_lines", '{"path": "words.txt"}')),
        calls(call("read", json.dumps({"filePath": str(words)}))),
        calls(call("sort_lines", '{"path": "words.txt"}')),
        calls(call("sort_lines", '{"path": "../other.txt"}')),
        text("Sorted."),
    )

    async with project(tmp_path, "file_tool", provider, read, NotOutside(), allow=False) as app:
        unread, _, sorted_, outside = tools_of(await asked(app))
        findings = check_tools([app.tools["sort_lines"]])

    assert isinstance(unread.state, Failed)
    assert "read" in unread.state.error
    assert isinstance(sorted_.state, Completed)
    assert sorted_.state.output == "words.txt is sorted; 1 repeated lines are gone."
    assert words.read_bytes() == b"apple\r\npear\r\n"
    assert "external_directory" in outcome(outside)
    assert other.read_text() == "b\na\n"
    assert findings == ()


class NotOutside:
    """A policy that allows all but what lies outside of the project."""

    @hookimpl
    async def permission_ask(self, request: Any) -> object:
        outside = request.permission == "external_directory"
        return Verdict(action="deny" if outside else "allow")


async def test_prompt_piece(tmp_path: Path) -> None:
    provider = Played(text("Hello."))
    spelling = config("prompt_piece", spelling="American")

    async with project(tmp_path, "prompt_piece", provider, config=spelling) as app:
        await asked(app)

    assert "Use American spelling" in provider.requests[0].system[-1]
    assert "subagent" not in provider.requests[0].system[-1]


@tool(effect="delegates")
async def send(context: ToolContext) -> str:
    """Give work to a subagent."""
    return (await context.run_subagent("helper", "Work.", description="work")).text


async def test_prompt_piece_says_more_to_subagents(tmp_path: Path) -> None:
    provider = Played(calls(call("send", "{}")), text("Done."))

    async with project(tmp_path, "prompt_piece", provider, ToolsPlugin(send)) as app:
        await asked(app)

    main, child, _ = (each.system[-1] for each in provider.requests)
    assert "Use British spelling" in main
    assert child == f"{main} You are a subagent: do not commit."


async def test_text_filter(tmp_path: Path) -> None:
    provider = Played(text("See #12, not `#13` or a[#14]."))
    tracker = config("text_filter", tracker="https://bugs.example.org")

    async with project(tmp_path, "text_filter", provider, config=tracker) as app:
        *_, answer = await asked(app)

    assert texts(answer) == ["See [#12](https://bugs.example.org/12), not `#13` or a[#14]."]


async def test_text_filter_without_a_tracker_changes_nothing(tmp_path: Path) -> None:
    async with project(tmp_path, "text_filter", Played(text("See #12."))) as app:
        *_, answer = await asked(app)

    assert texts(answer) == ["See #12."]


@tool(requires=False)
async def want(context: ToolContext, permission: str, pattern: str) -> str:
    """Ask for a permission.

    Args:
        permission: its name.
        pattern: what for.
    """
    await context.require(permission, [pattern])
    return "allowed"


@pytest.mark.parametrize(
    ("permission", "pattern", "said"),
    [
        ("edit", "vendored/a.py", "allowed"),
        ("edit", "generated/a.py", "generated is frozen"),
        ("bash", "ls vendor", "allowed"),
        ("bash", "rm generated/a.py", "the line names generated"),
    ],
)
async def test_permission_policy(tmp_path: Path, permission: str, pattern: str, said: str) -> None:
    args = json.dumps({"permission": permission, "pattern": pattern})
    provider = Played(calls(call("want", args)), text("Tried."))
    rules = config("permission_policy", frozen=["generated"])
    plugins = (provider, ToolsPlugin(want))

    async with project(tmp_path, "permission_policy", *plugins, config=rules) as app:
        [part] = tools_of(await asked(app))

    assert said in outcome(part)


async def test_permission_policy_denies_what_it_cannot_judge(tmp_path: Path) -> None:
    args = json.dumps({"permission": "read", "pattern": "a.py"})
    provider = Played(calls(call("want", args)), text("Tried."))
    rules = config("permission_policy", frozen="generated")
    plugins = (provider, ToolsPlugin(want))

    async with project(tmp_path, "permission_policy", *plugins, config=rules, fails=True) as app:
        [part] = tools_of(await asked(app))

    assert "permission_policy" in outcome(part)
    assert isinstance(part.state, Failed)


def outcome(part: ToolPart) -> str:
    assert isinstance(part.state, Completed | Failed)
    return part.state.output if isinstance(part.state, Completed) else part.state.error


async def test_compactor(tmp_path: Path) -> None:
    provider = Played(text("Hello.\nHow are you?"), text("Done."), text("Again."))

    async with project(tmp_path, "compactor", provider) as app:
        session = await app.create_session()
        await app.prompt(session.id, "Greet Ada")
        await app.prompt(session.id, "and Bob")
        await app.summarize(session.id)
        await app.prompt(session.id, HI)

        await app.summarize(session.id)
        await app.prompt(session.id, HI)

    seen = heard_by_model(provider.requests[-1])
    assert len(provider.requests) == 4  # no model was asked for a summary
    assert "Greet Ada" in seen
    assert any("- user: and Bob\n- assistant: Done.\n- user: hi\n" in each for each in seen)
    assert "Hello.\nHow are you?" not in seen


async def test_search_backend(tmp_path: Path) -> None:
    found, missing = (
        call("websearch", json.dumps({"query": query}), call_id=query)
        for query in ("hooks order", " ")
    )
    code_search = call("codesearch", '{"query": "roll"}', call_id="code")
    provider = Played(calls(found, missing, code_search), text("Found."))

    async with project(tmp_path, "search_backend", provider, websearch) as app:
        hit, refused, code = tools_of(await asked(app))

    assert isinstance(hit.state, Completed)
    assert "https://docs.example.org/hooks" in hit.state.output
    assert isinstance(code.state, Completed)
    assert "https://docs.example.org/api" in code.state.output
    assert isinstance(refused.state, Failed)
    assert "needs a word" in refused.state.error


async def test_own_hooks(tmp_path: Path) -> None:
    class Words:
        @hookimpl(optionalhook=True)
        async def register_terms(self) -> list[str]:
            return ["ship: to release to customers"]

    provider = Played(calls(call("glossary", "{}")), text("Read."))

    async with project(tmp_path, "own_hooks", provider, Words()) as app:
        [part] = tools_of(await asked(app))

    assert isinstance(part.state, Completed)
    assert part.state.output == "ship: to release to customers"


@tool
async def attempt(context: ToolContext, command: str) -> str:
    """Run a command.

    Args:
        command: what to run.
    """
    done = await context.run(["/bin/sh", "-c", command])
    return f"{done.output}ended with {done.exit_code}"


async def test_read_only_sandbox(tmp_path: Path) -> None:
    for name in ("project", ".ssh"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(f"text of {name}\n")
    reads = f"grep -c : /proc/net/dev; cat $TMPDIR/t a.txt {tmp_path}/.ssh/a.txt"
    script = f"echo x > $TMPDIR/t; {reads}; echo x > b.txt"
    provider = Played(calls(call("attempt", json.dumps({"command": script}))), text("Tried."))
    walls = {"model": "played/m", "sandbox": "workspace"}

    try:
        async with project(
            tmp_path, "read_only_sandbox", provider, ToolsPlugin(attempt), config=walls
        ) as app:
            [part] = tools_of(await asked(app))
    except ConfigError as error:
        pytest.skip(str(error))

    assert isinstance(part.state, Completed), part.state
    assert part.state.output.startswith("1\nx\ntext of project\n")
    assert "text of .ssh" not in part.state.output
    assert not part.state.output.endswith("ended with 0")
    assert not (tmp_path / "project" / "b.txt").exists()


def distribution(folder: Path, group: str, entry: str, example: str) -> str:
    """The folder of an installed distribution that has the example; it is for PYTHONPATH."""
    site = folder / "site"
    (site / "extra-1.0.dist-info").mkdir(parents=True)
    (site / "extra-1.0.dist-info" / "METADATA").write_text("Name: extra\nVersion: 1.0\n")
    (site / "extra-1.0.dist-info" / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
    shutil.copy(EXAMPLES / f"{example}.py", site)
    return str(site)


async def test_command(tmp_path: Path) -> None:
    pegboard = CommandLine(tmp_path, tmp_path / "project")
    pegboard.project.mkdir()
    group = "pegboard.commands"
    pegboard.env["PYTHONPATH"] = distribution(tmp_path, group, "tools = command:tools", "command")

    short, long = await pegboard("tools"), await pegboard("tools", "--long")

    assert (short.code, long.code) == (0, 0), short.err + long.err
    assert {"edit", "grep", "read"} <= set(short.out.splitlines())
    assert any(line.startswith("grep: ") for line in long.out.splitlines())


def test_route(tmp_path: Path) -> None:
    site = distribution(tmp_path, "pegboard", "activity = route:plugin", "route")

    with (
        model() as port,
        served(tmp_path, port, env={"PYTHONPATH": site}) as server,
        server.client() as client,
    ):
        session = client.post("/session").json()["id"]
        with heard(server) as events:
            client.post(f"/session/{session}/message", json=prompt("hi;;%say hello"))
            until(events, "session.idle")
        counted = client.get("/plugin/activity/turns")

    assert counted.json() == {session: 1}
