"""The tools that change one file: edit replaces a text, multiedit several, write all of it.

multiedit is off unless the configuration has a table `plugins.multiedit`. Models do as well with
several calls of edit, and each offered tool adds to the cost of every request.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pegboard import PermissionContext, Tool, ToolContext, ToolResult, hookimpl, tool
from pegboard.files import named_path
from pegboard.schema.config import Config


async def _may_change(context: PermissionContext, filePath: str) -> Path:
    """Return the resolved path unless changes are denied; the user approves the diff later."""
    path = await context.require_path(named_path(context, filePath))
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    facts = {"filepath": str(path)}
    await context.require("edit", [title], always=["*"], metadata=facts, later=True)
    return path


_PATHS = dict.fromkeys(("path", "file", "filename"), "filePath")
_OLD = dict.fromkeys(("old_str", "old_text"), "oldString")
_NEW = dict.fromkeys(("new_str", "new_text"), "newString")
_CONTENT = dict.fromkeys(("contents", "file_text", "text"), "content")


@tool(requires=_may_change, aliases={**_PATHS, **_OLD, **_NEW}, effect="edits")
async def edit(
    context: ToolContext,
    filePath: str,  # noqa: ARG001 - for `requires`
    oldString: str,
    newString: str,
    *,
    replaceAll: bool = False,
) -> ToolResult:
    """Replace text in a file that was read or attached; for most of a file use write.

    Args:
        filePath: the file.
        oldString: copied exactly, without read's line numbers. It must occur once, unless
            replaceAll. Empty makes a new file.
        newString: its replacement; empty removes.
        replaceAll: every occurrence.
    """
    from pegboard_plugins.edit.change import Edit, change_file  # 4 ms, at the first edit

    wanted = Edit(old=oldString, new=newString, replace_all=replaceAll)
    return await change_file(context, context.granted(_may_change), [wanted])


@hookimpl
async def register_tools() -> list[Tool]:
    """Register the edit tool."""
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
    return await change_file(context, context.granted(_may_change), edits)


multiedit = Tool.raw(
    "multiedit",
    _DESCRIPTION,
    _PARAMETERS,
    _multiedit,
    permission="edit",
    requires=_may_change,
    effect="edits",
)


class MultieditPlugin:
    """The plugin `multiedit`."""

    switch: ClassVar = {multiedit.id: "plugins.multiedit"}

    @hookimpl
    async def register_tools(self, config: Config) -> list[Tool]:
        """Return the multiedit tool if the configuration enables it, else nothing."""
        return [multiedit] if "multiedit" in config.plugins else []


multiedit_plugin = MultieditPlugin()


@tool(permission="edit", requires=_may_change, aliases={**_PATHS, **_CONTENT}, effect="edits")
async def write(context: ToolContext, filePath: str, content: str) -> ToolResult:  # noqa: ARG001 - for `requires`
    """Write a whole file; for small changes use edit.

    Folders are made. An existing file must be read first.

    Args:
        filePath: absolute or relative to the working directory.
        content: all of the file.
    """
    from pegboard_plugins.edit.change import write_file  # as edit does

    return await write_file(context, context.granted(_may_change), content)


class WritePlugin:
    """The plugin `write`."""

    @hookimpl
    async def register_tools(self) -> list[Tool]:
        """Register the write tool."""
        return [write]


write_plugin = WritePlugin()
