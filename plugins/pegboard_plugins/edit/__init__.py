"""The edit tool: one text of a file in the place of another."""

import os

from pegboard import Tool, ToolContext, ToolResult, hookimpl, tool
from pegboard.kit import named_path


async def requests(context: ToolContext, filePath: str) -> None:
    """What a change of this file asks for."""
    path = await context.ask_path(named_path(context, filePath))
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    await context.ask("edit", [title], always=["*"], metadata={"filepath": str(path)})


_ALIASES = {
    **dict.fromkeys(("path", "file", "filename"), "filePath"),
    **dict.fromkeys(("old_str", "old_text"), "oldString"),
    **dict.fromkeys(("new_str", "new_text"), "newString"),
}


@tool(asks=requests, aliases=_ALIASES, effect="edits")
async def edit(
    context: ToolContext, filePath: str, oldString: str, newString: str, *, replaceAll: bool = False
) -> ToolResult:
    """Replace text in a file that you have read, or that is attached; for most of a file use write.

    Args:
        filePath: absolute, or relative to the working directory.
        oldString: copied exactly from the file, indentation included, without read's line
            numbers. It must occur once, unless replaceAll. Empty: a new file is made.
        newString: what stands there afterwards; empty removes.
        replaceAll: change every occurrence.
    """
    from pegboard_plugins.edit.change import Edit, change_file  # 4 ms, at the first edit

    wanted = Edit(old=oldString, new=newString, replace_all=replaceAll)
    return await change_file(context, filePath, [wanted])


@hookimpl
async def register_tools() -> list[Tool]:
    """The edit tool."""
    return [edit]
