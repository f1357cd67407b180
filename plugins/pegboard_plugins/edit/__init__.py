"""The tools edit, one text of a file in the place of another, and multiedit, several at once.

multiedit is off until the configuration has a table `plugins.multiedit`: models do as well with
several calls of edit, and each tool that is offered costs every request.
"""

import os
from collections.abc import Mapping
from typing import Any

from pegboard import Tool, ToolContext, ToolResult, hookimpl, tool
from pegboard.kit import named_path
from pegboard.schema.config import Config


async def _requests(context: ToolContext, filePath: str) -> None:
    """What a change of this file asks for."""
    path = await context.ask_path(named_path(context, filePath))
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    await context.ask("edit", [title], always=["*"], metadata={"filepath": str(path)})


_ALIASES = {
    **dict.fromkeys(("path", "file", "filename"), "filePath"),
    **dict.fromkeys(("old_str", "old_text"), "oldString"),
    **dict.fromkeys(("new_str", "new_text"), "newString"),
}


@tool(asks=_requests, aliases=_ALIASES, effect="edits")
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


_EDIT = {
    "type": "object",
    "properties": {
        "oldString": {"type": "string"},
        "newString": {"type": "string"},
        "replaceAll": {"type": "boolean", "default": False},
    },
    "required": ["oldString", "newString"],
}
_PARAMETERS = {
    "type": "object",
    "properties": {
        "filePath": {"type": "string"},
        "edits": {"type": "array", "items": _EDIT, "minItems": 1, "maxItems": 1000},
    },
    "required": ["filePath", "edits"],
}
_DESCRIPTION = (
    "Make several edits of a file that you have read, one after the other, by the rules of"
    " edit. All are made or none; each sees the text as those before have left it."
)


async def _multiedit(context: ToolContext, args: Mapping[str, Any]) -> ToolResult:
    from pegboard_plugins.edit.change import Edit, change_file  # as edit does

    edits = [
        Edit(
            old=edit["oldString"],
            new=edit["newString"],
            replace_all=edit.get("replaceAll", False),
        )
        for edit in args["edits"]
    ]
    return await change_file(context, args["filePath"], edits)


multiedit = Tool.raw(
    "multiedit",
    _DESCRIPTION,
    _PARAMETERS,
    _multiedit,
    permission="edit",
    asks=_requests,
    effect="edits",
)


class MultieditPlugin:
    """The plugin `multiedit`."""

    @hookimpl
    async def register_tools(self, config: Config) -> list[Tool]:
        """The multiedit tool, where it is wanted."""
        return [multiedit] if "multiedit" in config.plugins else []


multiedit_plugin = MultieditPlugin()
