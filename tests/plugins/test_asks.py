"""What a built-in tool says beforehand that it will ask is what its call then asks."""

from contextlib import suppress
from pkgutil import resolve_name

import pytest

from pegboard.errors import PegboardError
from pegboard.schema.config import Config, PluginConfig
from pegboard_plugins.lsp import lsp
from pegboard_testing import tools_of
from plugins.test_conformance import PLUGINS
from tool_context import Context

SAYS_NOTHING = {"batch", "invalid", "plan_enter", "plan_exit", "question"}
"""They ask for no permission: what is there to decide is who may be offered them."""
CONFIG = Config(
    plugins={
        **{name: PluginConfig() for name in ("batch", "list", "multiedit", "plan")},
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
    ("processes", {}),
    ("read", {"filePath": "../a.txt"}),
    ("skill", {"name": "knots"}),
    ("task", {"description": "d", "prompt": "p", "subagent_type": "explore"}),
    ("todoread", {}),
    ("todowrite", {"todos": [{"content": "c", "status": "pending"}]}),
    ("webfetch", {"url": "http://127.0.0.1:1/x"}),
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
    context.session.home = context.session.config_dir = None
    for path in (project / "a.txt", tmp_path / "a.txt"):
        context.files.note_read(path)
    yield context
    await context.owner.end()


async def test_every_tool_that_asks_says_so_beforehand(tools):
    assert {name for name, tool in tools.items() if tool.asks is None} == SAYS_NOTHING
    assert {name for name, _ in CALLS} | SAYS_NOTHING == set(tools)


@pytest.mark.parametrize(("name", "args"), CALLS, ids=[name for name, _ in CALLS])
async def test_a_call_asks_what_was_said(tools, context, name, args):
    tool = tools[name]
    values = tool.validate(args)

    assert await tool.requests(context, values)
    said, context.asks = context.asks, []
    context.denied = {"webfetch", "websearch", "codesearch"}  # nothing leaves this machine
    with suppress(PegboardError):  # a server that is not there, a denial: it has asked by then
        await tool.call(context, values)

    assert [(ask.permission, ask.patterns, ask.always) for ask in context.asks] == [
        (ask.permission, ask.patterns, ask.always) for ask in said
    ]
