"""The tool that stands for a call that could not be understood; no model is offered it."""

from pegboard import Tool, ToolResult, hookimpl
from pegboard import tool as as_tool


@as_tool
async def invalid(tool: str, error: str) -> ToolResult:
    """Do not use."""
    return ToolResult(
        output=f"The call of {tool} could not be used: {error}\nCorrect the call and try again.",
        title=f"Invalid call of {tool}",
    )


@hookimpl
async def register_tools() -> list[Tool]:
    """The invalid tool."""
    return [invalid]
