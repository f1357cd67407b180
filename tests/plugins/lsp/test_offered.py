"""The tool is offered where it can answer."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from pegboard import ToolContext, hookimpl, tool
from pegboard.providers import ModelRequest, ToolDefinition
from pegboard.schema.config import Config, LspConfig
from pegboard.trust.decisions import Decision
from pegboard.unstable import ProgramSearch
from pegboard_plugins import lsp as plugin
from pegboard_plugins.lsp import known, lsp, sourcetree
from pegboard_plugins.lsp.sourcetree import source_files
from support.models.played import Played, ToolsPlugin, call, calls, opened, text
from support.sessions.session_views import MODEL, view
from support.tools.looks import counted_looks
from support.tools.lsp_project import config
from support.tools.tool_context import Context

TOOLS = tuple(
    ToolDefinition(name=name, description="", parameters={}, permission=name)
    for name in ("lsp", "read")
)
REQUEST = ModelRequest(model=MODEL, system=(), messages=(), tools=TOOLS)


class Prompt:
    """Gives requests a system prompt."""

    @hookimpl
    async def chat_system_transform(self) -> tuple[str, ...]:
        return ("You write code.",)


async def offered(
    folder: Path, settings: Config, *, own: Path | None = None, **facts: bool
) -> bool:
    context = Context(folder)
    if own is not None:
        context.trust_program(own)
    facts = {"trusted": True, "trusted_by_user": True, **facts}
    trust = Decision(root=folder, allowed=context.allowed, **facts)
    session = replace(view(folder, config=settings), trust=trust)
    request = await plugin.chat_params(session, REQUEST) or REQUEST
    names = [tool.name for tool in request.tools]
    assert names in (["lsp", "read"], ["read"])
    return "lsp" in names


async def test_a_trusted_project_with_a_file_of_an_installed_server_has_the_tool(
    tmp_path: Path,
) -> None:
    settings = config("none", tmp_path / "log")
    (tmp_path / "notes.md").touch()
    assert not await offered(tmp_path, settings)

    (tmp_path / "src/deep").mkdir(parents=True)
    (tmp_path / "src/deep/a.T").touch()

    assert await offered(tmp_path, settings)
    assert not await offered(tmp_path, settings, trusted=False)
    missing = LspConfig(command=("no-such-program",), extensions=("t",))
    assert not await offered(tmp_path, Config(lsp={"tests": missing}))


async def test_a_server_of_the_projects_own_packages_counts_where_it_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/none")
    settings = Config(lsp={"typescript": LspConfig()})
    for name in ("doc/b.ts", "web/src/a.ts", "web/src/c.ts"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert not await offered(tmp_path, settings)

    own = tmp_path / "web/node_modules/.bin/typescript-language-server"
    own.parent.mkdir(parents=True)
    shutil.copy(sys.executable, own)

    assert not await offered(tmp_path, settings)
    assert await offered(tmp_path, settings, own=own)
    assert not await offered(tmp_path, settings, own=own, trusted_by_user=False)


async def test_of_a_big_project_few_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "MOST_LOOKED_AT", 3)
    looked: list[str] = []

    def counted(root: Path) -> Iterator[os.DirEntry[str]]:
        for entry in source_files(root):
            looked.append(entry.name)
            yield entry

    monkeypatch.setattr(sourcetree, "source_files", counted)
    settings = config("none", tmp_path / "log")
    for number in range(3):
        (tmp_path / f"{number}.md").touch()
    assert not await offered(tmp_path, settings)
    looked.clear()

    for number in range(3, 9):
        (tmp_path / f"{number}.md").touch()

    assert await offered(tmp_path, settings)
    assert len(looked) == 4


def test_programs_for_files_that_the_project_does_not_have_are_not_searched(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.t").touch()
    search = ProgramSearch(root=tmp_path, directory=tmp_path, trusted_by_user=True, env=os.environ)
    few = config("none", tmp_path / "log").lsp
    others = {
        f"other{number}": LspConfig(command=(f"no-{number}",), extensions=(f"t{number}",))
        for number in range(40)
    }

    looks = counted_looks(lambda: known.can_answer(search, few))

    assert counted_looks(lambda: known.can_answer(search, {**few, **others})) == looks
    assert looks["scandir"] == 1


async def test_a_request_without_the_tool_costs_no_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "configured", None)
    request = replace(REQUEST, tools=TOOLS[1:])

    assert await plugin.chat_params(view(tmp_path), request) is None


@tool(permission="read")
async def make(context: ToolContext, says: bool) -> str:
    """Make a file of a language that has a server."""
    path = context.worktree / "a.t"
    path.touch()
    if says:
        await context.record_edit(path)
    return "made"


@pytest.mark.parametrize("says", [False, True])
async def test_in_an_app_the_tool_is_there_from_the_next_prompt_on_or_after_a_said_change(
    tmp_path: Path, *, says: bool
) -> None:
    arguments = '{"says": true}' if says else '{"says": false}'
    provider = Played(calls(call("make", arguments)), text("done"))
    settings = config("none", tmp_path / "log").lsp["tests"]
    given = {"command": list(settings.command), "extensions": ["t"]}
    options = {"config": {"model": "played/m", "lsp": {"tests": given}}}

    plugins = (plugin, Prompt(), ToolsPlugin(make))
    async with opened(tmp_path, provider, *plugins, **options) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")
        await app.prompt(session.id, "go")

    offered_names = [[tool.name for tool in request.tools] for request in provider.requests]
    both = [lsp.id, "make"]
    assert offered_names == [["make"], both if says else ["make"], both]


def test_the_text_says_what_each_operation_needs() -> None:
    said = lsp.parameters["properties"]

    assert "workspaceSymbol any file" in said["filePath"]["description"]
    assert "not for documentSymbol, workspaceSymbol, diagnostics" in said["line"]["description"]
    assert "first letter, from 1" in said["character"]["description"]
    assert "workspaceSymbol" in said["query"]["description"]
    assert "where grep knows text" in lsp.description
