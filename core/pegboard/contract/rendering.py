"""The hook that draws tool calls; `hookspecs` lists it with the others."""

from typing import TYPE_CHECKING

from pegboard.contract import checks as _answers
from pegboard.contract.marks import hookspec as _hookspec
from pegboard.schema.part import ToolPart

if TYPE_CHECKING:
    from pegboard.contract.blocks import Block


RENDERED_WITHIN_S = 0.5
"""Ten times what a function may take: a busy machine is no reason to lose a plugin's block."""


@_hookspec("first", check=_answers.block, limit_s=RENDERED_WITHIN_S)
def render_tool(part: ToolPart, width: int) -> "Block | None":
    """What people see of a tool call: on a terminal, on a page, in an export.

    Called once for each state of a call that is shown and each width, by a program that shows
    it. The function is a plain one that reads nothing but its arguments and takes 50 ms at most;
    one that takes half a second is given up. First: a plugin that raises is reported and the
    next is asked. A call that no plugin draws is shown by `ToolResult.display`, or else by its
    title and output.

    - width: the columns that there are; longer lines are wrapped.

    Since 0.1.
    """
