"""The edit tool: one text of a file in the place of another."""

from pegboard import Tool, ToolContext, ToolResult, hookimpl, tool
from pegboard_plugins.edit.change import Edit, change_file


@tool
async def edit(
    context: ToolContext, filePath: str, oldString: str, newString: str, *, replaceAll: bool = False
) -> ToolResult:
    """Replace text in a file that you have read.

    oldString is copied exactly from the file, indentation included, without read's line
    numbers, and long enough to occur once; with replaceAll every occurrence is changed. An
    empty oldString makes a new file.
    """
    wanted = Edit(old=oldString, new=newString, replace_all=replaceAll)
    return await change_file(context, filePath, [wanted])


@hookimpl
async def register_tools() -> list[Tool]:
    """The edit tool."""
    return [edit]
