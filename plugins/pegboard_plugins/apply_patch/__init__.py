"""The apply_patch tool: many files in one call, for the models that were taught the format."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from msgspec.structs import replace

from pegboard import ModelRequest, Tool, ToolContext, ToolResult, hookimpl, tool
from pegboard.schema.model import Model
from pegboard_plugins.apply_patch.changes import Change, check, located, planned, title
from pegboard_plugins.apply_patch.parser import parse
from pegboard_plugins.apply_patch.writing import write_all

_LETTERS = {"add": "A", "update": "M", "delete": "D", "move": "R"}
_REPLACED = frozenset({"edit", "write", "multiedit"})


@tool(permission="edit")
async def apply_patch(context: ToolContext, patchText: str) -> ToolResult:
    """Change files that you have read: all that the patch names, or none.

    *** Begin Patch
    *** Update File: path
    *** Move to: path (optional)
    @@ a line above the place, such as a def (optional)
     kept line
    -old line
    +new line
    *** End of File (optional: the chunk ends the file)
    *** Add File: path
    +each line
    *** Delete File: path
    *** End Patch
    """
    places = await located(context, parse(patchText))
    async with AsyncExitStack() as locks:
        for path in sorted({path for place in places for path in place.paths}):
            await locks.enter_async_context(context.files.writing(path))
        changes = await asyncio.to_thread(planned, context, places)
        await _ask(context, changes)
        await asyncio.to_thread(check, context, changes)
        await write_all(context, changes)
    for path in (path for change in changes for path in change.paths):
        await context.edited(path)
    return _result(context, changes)


async def _ask(context: ToolContext, changes: Sequence[Change]) -> None:
    paths = [path for change in changes for path in change.paths]
    await context.ask(
        "edit",
        [title(context, path) for path in paths],
        always=["*"],
        metadata={
            "filepath": ", ".join(title(context, path) for path in paths),
            "diff": _diff(changes),
            "files": [_listed(context, change) for change in changes],
        },
    )


def _diff(changes: Sequence[Change]) -> str:
    return "".join(change.diff.text for change in changes)


def _listed(context: ToolContext, change: Change) -> dict[str, object]:
    moved = {"movePath": str(change.target)} if change.target else {}
    return {
        "filePath": str(change.path),
        "relativePath": title(context, change.target or change.path),
        "type": change.kind,
        "diff": change.diff.text,
        "additions": change.diff.additions,
        "deletions": change.diff.deletions,
        **moved,
    }


def _result(context: ToolContext, changes: Sequence[Change]) -> ToolResult:
    lines = []
    for change in changes:
        moved = f" -> {title(context, change.target)}" if change.target else ""
        lines.append(
            f"{_LETTERS[change.kind]} {title(context, change.path)}{moved}"
            f" +{change.diff.additions} -{change.diff.deletions}"
        )
    count = "1 file" if len(changes) == 1 else f"{len(changes)} files"
    return ToolResult(
        output="\n".join(["The patch is applied:", *lines]),
        title=f"Patched {count}",
        metadata={
            "diff": _diff(changes),
            "files": [_listed(context, change) for change in changes],
            "diagnostics": {},
        },
    )


@hookimpl
async def register_tools() -> list[Tool]:
    """The apply_patch tool."""
    return [apply_patch]


@hookimpl
async def chat_params(request: ModelRequest) -> ModelRequest | None:
    """The request with either apply_patch or the other tools that edit, never both."""
    names = {tool.name for tool in request.tools}
    if "apply_patch" not in names:
        return None
    patches = writes_patches(request.model) or not names & _REPLACED
    gone = _REPLACED if patches else frozenset({"apply_patch"})
    return replace(request, tools=tuple(tool for tool in request.tools if tool.name not in gone))


def writes_patches(model: Model) -> bool:
    """Whether a model was taught this format (opencode `tool/registry.ts`)."""
    name = model.api.id or model.id
    return "gpt-" in name and "oss" not in name and "gpt-4" not in name
