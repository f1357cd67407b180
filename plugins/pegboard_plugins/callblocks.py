"""The display of tool calls, by the `draw` function of each tool."""

from pegboard import Tool, hookimpl
from pegboard.display import Block
from pegboard.schema.part import ToolPart


@hookimpl(trylast=True)
def render_tool(part: ToolPart, tool: Tool | None) -> Block | None:
    """Return the block that the call's tool draws, or None if the tool does not draw calls."""
    return tool.draw(part) if tool is not None and tool.draw is not None else None
