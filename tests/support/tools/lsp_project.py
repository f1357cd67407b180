"""A project with the language server of the tests, and what a model does in it."""

import sys
from pathlib import Path

from pegboard.contract.results import ToolResult
from pegboard.schema.config import Config, LspConfig
from pegboard_plugins import lsp as plugin
from pegboard_plugins.lsp import lsp
from support.tools.tool_context import Context, call

PROGRAM = Path(__file__).parent / "language_server.py"


def config(fault: str, log: Path, globs: str = "") -> Config:
    """The server for files `*.t`, which misbehaves as `fault` says and wants to hear of `globs`."""
    settings = LspConfig(
        command=(sys.executable, str(PROGRAM), fault),
        extensions=("t",),
        env={"LSP_LOG": str(log), "LSP_GLOBS": globs},
    )
    return Config(lsp={"tests": settings})


async def asked(
    context: Context, operation: str = "hover", name: str = "a.t", **place: object
) -> str:
    """What the tool answers."""
    path = str(context.directory / name)
    result = await call(lsp, context, operation=operation, filePath=path, **place)
    assert isinstance(result, ToolResult)
    return result.output


async def edited(context: Context, text: str | None, name: str = "a.t", *, gone: str = "") -> str:
    """What is added to the answer of a tool that writes a file, or removes it."""
    path = context.directory / name
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    context.edits.clear()
    if gone:
        await context.record_edit(context.directory / gone)
    await context.record_edit(path)
    answer = await plugin.tool_execute_after(context, ToolResult(output=""))
    return answer.output if answer else ""


def said(context: Context) -> list[str]:
    """What the server was told, word by word."""
    return (context.directory / "log").read_text().split()
