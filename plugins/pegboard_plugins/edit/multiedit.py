"""The multiedit tool: several edits of one file, all of them or none.

It is off until the configuration has a table `plugins.multiedit`: models do as well with
several calls of edit, and each tool that is offered costs every request.
"""

from collections.abc import Mapping
from typing import Any

from pegboard import Tool, ToolContext, ToolResult, hookimpl
from pegboard.schema.config import Config
from pegboard_plugins.edit import requests

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
    asks=requests,
    effect="edits",
)


@hookimpl
async def register_tools(config: Config) -> list[Tool]:
    """The multiedit tool, where it is wanted."""
    return [multiedit] if "multiedit" in config.plugins else []
