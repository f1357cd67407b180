"""The public names for blocks, the displayed form of tool calls."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.contract.results": (
            "Block",
            "Span",
            "SpanLine",
            "SpanStyle",
        ),
        "pegboard.display.blocklines": ("plain_line",),
        "pegboard.display.defaultblocks": (
            "block_of_text",
            "default_block",
        ),
        "pegboard.display.visibletext": ("escape_controls",),
    },
)
