"""What clients are told of the language servers that were started."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard.schema.config import Config, LspConfig, Service
from pegboard_plugins import lsp as plugin
from pegboard_plugins.lsp import lsp
from support.tools.tool_context import Context, call

PROGRAM = Path(__file__).parents[2] / "support/tools/language_server.py"


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[Context]:
    settings = LspConfig(
        command=(sys.executable, str(PROGRAM), "none"),
        extensions=("t",),
        env={"LSP_LOG": str(tmp_path / "log")},
    )
    (tmp_path / "a.t").write_text("one\n")
    made = Context(tmp_path, config=Config(lsp={"tests": settings}))
    yield made
    if kept := made.stash.get(plugin._SERVERS):
        await kept.aclose()


async def test_a_server_is_told_of_from_its_start_on(context: Context) -> None:
    before = await plugin.services(context)
    path = str(context.directory / "a.t")

    await call(lsp, context, operation="hover", filePath=path)

    root = str(context.worktree)
    assert before == ()
    assert await plugin.services(context) == (
        Service(kind="lsp", name="tests", root=root, state="running"),
    )


async def test_a_server_that_has_ended_has_failed(context: Context) -> None:
    path = str(context.directory / "a.t")
    await call(lsp, context, operation="hover", filePath=path)
    [slot] = context.stash.get(plugin._SERVERS)._slots.values()

    await slot.starting.result().aclose()

    [told] = await plugin.services(context)
    assert told.state == "failed"
