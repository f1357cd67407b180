"""The tool that answers a call that Pegboard cannot run; models are not offered it."""

from pegboard import Tool, ToolContext, ToolResult, hookimpl
from pegboard import tool as as_tool


@as_tool(effect="reads", serves="refused_calls")
async def invalid(
    context: ToolContext, tool: str, error: str, setting: str = "", *, needs_user: bool = False
) -> ToolResult:
    """Do not use."""
    if setting:
        return ToolResult(
            output=f"{tool} is off, and only the user can switch it on, with the setting"
            f" `{setting}`. Go on without it; what you were to use it for may need another tool.",
            title=f"{tool} is off",
        )
    if needs_user and not context.session.interactive:
        return ToolResult(
            output="Nobody is there to be asked. Decide it yourself, and say in your answer what"
            " you have assumed.",
            title="Nobody can be asked",
        )
    return ToolResult(
        output=f"The call of {tool} could not be used: {error}\nCorrect the call and try again.",
        title=f"Invalid call of {tool}",
    )


@hookimpl
async def register_tools() -> list[Tool]:
    """Return the tool `invalid`."""
    return [invalid]
