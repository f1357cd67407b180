"""The drawing of a call whose tool draws its calls itself."""

from pegboard import Tool, hookimpl
from pegboard.display import Block
from pegboard.schema.part import ToolPart


@hookimpl(trylast=True)
def render_tool(part: ToolPart, tool: Tool | None) -> Block | None:
    """Return the block of the call's own tool."""
    return tool.draw(part) if tool is not None and tool.draw is not None else None
