"""The public names for plugins that limit the cost of sessions."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.policy.clock": ("Clock",),
        "pegboard.providers.spending": (
            "Budget",
            "Need",
            "OpenBudget",
            "cost_of",
        ),
    },
)
