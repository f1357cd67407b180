"""The public names for plugins that shorten the history of a session."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.contract.host": (
            "Compaction",
            "CompactionRequest",
            "Compactor",
        ),
    },
)
