"""The tool that stands for a call that could not be understood; no model is offered it."""

from pegboard import Tool, ToolContext, ToolResult, hookimpl
from pegboard import tool as as_tool
from pegboard.schema.config import Config, PluginConfig

_TABLES = {"batch": "batch", "list": "list", "multiedit": "multiedit", "plan_enter": "plan"}
"""Tools that are off until the configuration has the table of their plugin."""
_SEARCHES = ("websearch", "codesearch")
_DECIDED = frozenset({"question", "plan_enter", "plan_exit"})
"""Tools that wait for a person, and are not offered where nobody can be asked."""


@as_tool(effect="reads", serves="refused_calls")
async def invalid(context: ToolContext, tool: str, error: str) -> ToolResult:
    """Do not use."""
    if setting := switched_off(tool, context.session.config):
        return ToolResult(
            output=f"{tool} is off, and only the user can switch it on, with the setting"
            f" `{setting}`. Go on without it; what you were to use it for may need another tool.",
            title=f"{tool} is off",
        )
    if tool.lower() in _DECIDED and not context.session.interactive:
        return ToolResult(
            output="Nobody is there to be asked. Decide it yourself, and say in your answer what"
            " you have assumed.",
            title="Nobody can be asked",
        )
    return ToolResult(
        output=f"The call of {tool} could not be used: {error}\nCorrect the call and try again.",
        title=f"Invalid call of {tool}",
    )


def switched_off(tool: str, config: Config) -> str:
    """The setting that would switch on a built-in tool; empty if it is on, or not one of them."""
    name = tool.lower()
    if name in _SEARCHES:
        options = config.plugins.get("websearch", PluginConfig()).options
        return "" if options.get("url") else "plugins.websearch.options.url"
    table = _TABLES.get(name, "")
    return f"plugins.{table}" if table and table not in config.plugins else ""


@hookimpl
async def register_tools() -> list[Tool]:
    """The invalid tool."""
    return [invalid]
