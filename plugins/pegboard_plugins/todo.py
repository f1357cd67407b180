"""The tools that read and write the session's todo list."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard import Tool, ToolContext, ToolError, ToolResult, hookimpl, tool
from pegboard.schema.session import Todo
from pegboard.schema.wire import to_json

_ENTRY = {
    "type": "object",
    "properties": {
        "content": {"type": "string"},
        "status": {
            "type": "string",
            "enum": ["pending", "in_progress", "completed", "cancelled"],
        },
        "priority": {"type": "string", "enum": ["high", "medium", "low"]},
    },
    "required": ["content", "status"],
}
_PARAMETERS = {
    "type": "object",
    "properties": {"todos": {"type": "array", "items": _ENTRY}},
    "required": ["todos"],
}
_DESCRIPTION = (
    "Replace the task list, which the user sees. For three or more steps, not for less or"
    " questions: one entry in_progress, each completed at once, nothing in_progress at the end."
)


async def _todowrite(context: ToolContext, args: Mapping[str, Any]) -> ToolResult:
    if not all(entry["content"].strip() for entry in args["todos"]):
        raise ToolError("an entry of the list has no content")
    todos = tuple(
        Todo(
            content=entry["content"],
            status=entry["status"],
            priority=entry.get("priority", "medium"),
            id=str(entry.get("id") or number),
        )
        for number, entry in enumerate(args["todos"], start=1)
    )
    await context.set_todos(todos)
    return _result(todos)


@tool(effect="reads", exposure="hidden")
async def todoread(context: ToolContext) -> ToolResult:
    """Read the session's task list."""
    return _result(await context.todos())


def _result(todos: Sequence[Todo]) -> ToolResult:
    listed = [to_json(todo) for todo in todos]
    still_open = sum(todo.status not in ("completed", "cancelled") for todo in todos)
    return ToolResult(
        output=json.dumps(listed, ensure_ascii=False, indent=1),
        title=f"{still_open} todos",
        metadata={"todos": listed},
    )


@hookimpl
async def register_tools() -> list[Tool]:
    """Return the tools `todowrite` and `todoread`."""
    todowrite = Tool.raw("todowrite", _DESCRIPTION, _PARAMETERS, _todowrite, effect="reads")
    return [todowrite, todoread]
