"""Code for drawing on a terminal: Markdown, colours, costs, and the chat's first paint."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard_plugins.shared.terminal.diffcolours": ("coloured_diff", "row_sign"),
        "pegboard_plugins.shared.terminal.firstpaint": ("SIGNS", "painted", "write_plain_signs"),
        "pegboard_plugins.shared.terminal.hangups": ("end_within", "on_hangup"),
        "pegboard_plugins.shared.terminal.interruption": ("interruptible",),
        "pegboard_plugins.shared.terminal.markdownblocks": ("MarkdownBlocks",),
        "pegboard_plugins.shared.terminal.outcome": (
            "CUT",
            "UNKNOWN_COST",
            "cost_text",
            "denial_of",
            "exit_of_answer",
            "sum_costs",
        ),
        "pegboard_plugins.shared.terminal.palette": (
            "DARK_PALETTE",
            "LIGHT_PALETTE",
            "PALETTE",
        ),
        "pegboard_plugins.shared.terminal.passwordfile": ("password_of",),
        "pegboard_plugins.shared.terminal.pen": (
            "Pen",
            "colours_of",
            "wrapped",
        ),
        "pegboard_plugins.shared.terminal.permissionlines": (
            "CONFIRM",
            "HELD_S",
            "QUIET_S",
            "permission_lines",
        ),
        "pegboard_plugins.shared.terminal.typedahead": ("TYPED_AHEAD", "question_terminal"),
    },
)
