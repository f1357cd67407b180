"""What people see of each tool call: a plugin's block, the tool's own, or the one any call has."""

from collections import OrderedDict

from pegboard.contract import hookspecs
from pegboard.contract.blocks import Block
from pegboard.contract.callblocks import default_block, given_block
from pegboard.contract.host import HookCalls
from pegboard.schema.part import Completed, Failed, ToolPart

_KEPT = 256


class CallBlocks:
    """The blocks of tool calls; that of a call which has ended is made once for each width."""

    def __init__(self, hooks: HookCalls) -> None:
        self._hooks = hooks
        self._kept: OrderedDict[tuple[str, int], Block] = OrderedDict()

    async def block(self, part: ToolPart, width: int) -> Block:
        """What is to be shown of a call, in lines of at most `width` columns where it matters."""
        key = (part.id, width)
        if key in self._kept:
            return self._kept[key]
        block = await self._made(part, width)
        if isinstance(part.state, Completed | Failed):
            self._kept[key] = block
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return block

    async def _made(self, part: ToolPart, width: int) -> Block:
        drawn = None
        if self._hooks.has(hookspecs.render_tool):
            drawn = await self._hooks.first(hookspecs.render_tool, part=part, width=width)
        return drawn or given_block(part) or default_block(part)
