"""What each built-in tool requires, and that its body finds all of it granted."""

from contextlib import suppress
from pkgutil import resolve_name

import pytest

from pegboard.errors import PegboardError
from pegboard.schema.config import Config, PluginConfig
from pegboard.testing import tools_of
from pegboard_plugins.lsp import lsp
from plugins.test_conformance import PLUGINS
from support.tools.tool_context import Context

REQUIRES_NOTHING = {
    "batch",
    "plan_enter",
    "plan_exit",
    "processes",
    "question",
    "tool_call",
    "tool_search",
}
"""Each of their calls asks by itself, the user is asked by the tool's own work, or none acts."""
REQUIRES_ITS_PERMISSION = {"invalid", "todoread", "todowrite"}
CONFIG = Config(
    plugins={
        **{name: PluginConfig() for name in ("batch", "list", "multiedit", "plan")},
        "toolsearch": PluginConfig(options={"gateway": True}),
        "websearch": PluginConfig(options={"url": "http://127.0.0.1:1"}),
    }
)
PATCH = """*** Begin Patch
*** Update File: a.txt
*** Move to: ../b.txt
@@
-one
+two
*** Add File: new
+x
*** End Patch"""
EDIT = {"oldString": "one", "newString": "two"}
CALLS = [
    ("apply_patch", {"patchText": PATCH}),
    ("bash", {"command": "echo hi > out; cat ../x"}),
    ("bash", {"command": "true", "background": True}),
    ("codesearch", {"query": "q"}),
    ("edit", {"filePath": "a.txt", **EDIT}),
    ("glob", {"pattern": "*", "path": ".."}),
    ("grep", {"pattern": "one"}),
    ("list", {"path": "."}),
    ("lsp", {"operation": "hover", "filePath": "../a.py"}),
    ("multiedit", {"filePath": "../a.txt", "edits": [EDIT]}),
    ("read", {"filePath": "../a.txt"}),
    ("skill", {"name": "knots"}),
    ("task", {"description": "d", "prompt": "p", "subagent_type": "explore"}),
    ("todoread", {}),
    ("todowrite", {"todos": [{"content": "c", "status": "pending"}]}),
    ("webfetch", {"url": "HTTP://127.0.0.1.:1/x"}),
    ("websearch", {"query": "q"}),
    ("write", {"filePath": "sub/new", "content": "x"}),
]


@pytest.fixture
async def tools():
    modules = [resolve_name(name) for name in PLUGINS]
    found = [tool for each in modules for tool in await tools_of(each, config=CONFIG)]
    return {tool.id: tool for tool in [lsp, *found]}  # lsp depends on what is installed here


@pytest.fixture
async def context(tmp_path):
    project = tmp_path / "project"
    skill = project / ".pegboard" / "skills" / "knots"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\ndescription: Ties knots.\n---\nTie.\n")
    (project / "a.txt").write_text("one\n")
    (tmp_path / "a.txt").write_text("one\n")
    context = Context(project)
    context.session.directory = context.session.worktree = project
    context.session.home = None
    for path in (project / "a.txt", tmp_path / "a.txt"):
        context.files.note_read(path)
    yield context
    await context.owner.end()


async def test_each_tool_says_what_it_requires(tools):
    by_default = {name for name, tool in tools.items() if tool.requires is None}
    assert by_default == REQUIRES_ITS_PERMISSION
    assert {name for name, tool in tools.items() if tool.requires is False} == REQUIRES_NOTHING
    assert {name for name, _ in CALLS} | REQUIRES_NOTHING | {"invalid"} == set(tools)


@pytest.mark.parametrize(("name", "args"), CALLS, ids=[name for name, _ in CALLS])
async def test_a_body_asks_for_nothing_new(tools, context, name, args):
    tool = tools[name]
    values = tool.validate(args)

    await context.permit(tool, values)
    required = [*context.asks, *context.later]
    assert tool.permission in {ask.permission for ask in required}
    later = [ask for ask in context.later if ask not in context.asks]
    context.asks = []
    context.denied = {"webfetch"} if name == "webfetch" else set()  # a redirect would ask again
    with suppress(PegboardError):  # a server that is not there
        await tool.call(context, values)

    assert context.asks == later  # an edit asks with its diff
