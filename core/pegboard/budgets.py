"""Names for plugins that limit what a session may cost."""

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
