"""The steps of apply_patch: plan the changes, ask the user, check the files, write."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from msgspec.structs import asdict

from pegboard import PermissionContext, ToolContext, ToolError, ToolResult
from pegboard_plugins.apply_patch.changes import (
    PatchedFile,
    PatchPlace,
    check,
    located,
    planned,
    title,
)
from pegboard_plugins.apply_patch.parser import PatchError, parse
from pegboard_plugins.apply_patch.writing import write_all

_LETTERS = {"add": "A", "update": "M", "delete": "D", "move": "R"}


async def apply_sections(context: ToolContext, places: Sequence[PatchPlace]) -> ToolResult:
    """Apply all changes of a patch; if one of them fails, leave every file unchanged."""
    async with AsyncExitStack() as locks:
        for path in sorted({path for place in places for path in place.paths}):
            await locks.enter_async_context(context.files.lock(path))
        changes = await asyncio.to_thread(planned, context, places)
        await _ask(context, changes)
        await asyncio.to_thread(check, context, changes)
        try:
            links = await write_all(context, changes)
        except PatchError:
            raise  # nothing was changed
        except (asyncio.CancelledError, ToolError):
            await _tell(context, changes)  # it stands all the same, or a part of it does
            raise
    await _tell(context, changes)
    return _result(context, changes, links)


async def _tell(context: ToolContext, changes: Sequence[PatchedFile]) -> None:
    for path in (path for change in changes for path in change.paths):
        await context.record_edit(path)


async def permitted(context: PermissionContext, text: str) -> Sequence[PatchPlace]:
    """Parse a patch; return its sections with their paths, unless the permission `edit` is denied.

    No file is read. `apply_sections` asks for approval of the diff later.

    :raises PatchError: when the text is not a valid patch.
    """
    places = await located(context, parse(text))
    titles = [title(context, path) for place in places for path in place.paths]
    facts = {"filepath": ", ".join(titles)}
    await context.require("edit", titles, always=["*"], metadata=facts, later=True)
    return places


async def _ask(context: ToolContext, changes: Sequence[PatchedFile]) -> None:
    paths = [path for change in changes for path in change.paths]
    await context.require(
        "edit",
        [title(context, path) for path in paths],
        always=["*"],
        metadata={
            "filepath": ", ".join(title(context, path) for path in paths),
            "diff": _diff(changes),
            "files": [_listed(context, change) for change in changes],
        },
    )


def _diff(changes: Sequence[PatchedFile]) -> str:
    return "".join(change.diff.text for change in changes)


def _listed(context: ToolContext, change: PatchedFile) -> dict[str, object]:
    moved = {"movePath": str(change.target)} if change.target else {}
    return {
        "filePath": str(change.path),
        "relativePath": title(context, change.target or change.path),
        "type": change.kind,
        "diff": change.diff.text,
        "additions": change.diff.additions,
        "deletions": change.diff.deletions,
        **moved,
        **({"choices": [asdict(choice) for choice in change.choices]} if change.choices else {}),
    }


def _result(context: ToolContext, changes: Sequence[PatchedFile], links: int) -> ToolResult:
    lines = []
    for change in changes:
        moved = f" -> {title(context, change.target)}" if change.target else ""
        lines.append(
            f"{_LETTERS[change.kind]} {title(context, change.path)}{moved}"
            f" +{change.diff.additions} -{change.diff.deletions}"
        )
        lines += [
            f"chunk {choice.chunk} of {title(context, change.path)}: {choice}"
            for choice in change.choices
        ]
    if links:
        lines.append(f"{links} other names of these files (hard links) keep the old content.")
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
