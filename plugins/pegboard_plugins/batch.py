"""The batch tool: it runs several tool calls at once, for models that make one call at a time.

The tool is off unless the configuration has a table `plugins.batch`. Most models make several
calls in one answer, which has the same effect and costs nothing.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from pegboard import PermissionDeniedError, Tool, ToolContext, ToolError, ToolResult, hookimpl
from pegboard.schema.config import Config

MOST_CALLS = 25
TIME_LIMIT_S = 3600.0
"""For all calls together; each has its own limit too."""
SHOWN_REASON = 200

_CALL = {
    "type": "object",
    "properties": {"tool": {"type": "string"}, "parameters": {"type": "object"}},
    "required": ["tool", "parameters"],
}
_PARAMETERS = {
    "type": "object",
    "properties": {
        "tool_calls": {"type": "array", "items": _CALL, "minItems": 1, "maxItems": MOST_CALLS}
    },
    "required": ["tool_calls"],
}
_DESCRIPTION = (
    f"Make up to {MOST_CALLS} calls of other tools at the same time. Each is answered by itself."
    " Not for calls that need the outcome of another."
)


async def _batch(context: ToolContext, args: Mapping[str, Any]) -> ToolResult:
    calls = args["tool_calls"]
    async with asyncio.TaskGroup() as running:
        tasks = [
            running.create_task(_reason(context, call["tool"], call["parameters"]))
            for call in calls
        ]
    reasons = [task.result() for task in tasks]
    failed = sum(reason is not None for reason in reasons)
    lines = [
        f"{number}. {call['tool']}: {'done' if reason is None else f'failed: {reason}'}"
        for number, (call, reason) in enumerate(zip(calls, reasons, strict=True), start=1)
    ]
    return ToolResult(
        output="\n".join([*lines, "The answers stand with the calls."]),
        title=f"{len(calls) - failed} of {len(calls)} calls done",
        metadata={
            "totalCalls": len(calls),
            "successful": len(calls) - failed,
            "failed": failed,
            "tools": [call["tool"] for call in calls],
        },
    )


async def _reason(context: ToolContext, name: str, parameters: Mapping[str, Any]) -> str | None:
    """Make one call of the batch; return why it failed, or None after success."""
    if name.lower() == "batch":
        return "a batch cannot be part of another"
    try:
        await context.call_tool(name, parameters)
    except (ToolError, PermissionDeniedError) as error:
        return str(error)[:SHOWN_REASON]
    return None


batch = Tool.raw(
    "batch",
    _DESCRIPTION,
    _PARAMETERS,
    _batch,
    timeout_s=TIME_LIMIT_S,
    effect="delegates",
    requires=False,
)


switch = {batch.id: "plugins.batch"}


@hookimpl
async def register_tools(config: Config) -> list[Tool]:
    """Return the batch tool if the configuration enables it."""
    return [batch] if "batch" in config.plugins else []
