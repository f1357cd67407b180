"""The public names for authors of `pegboard` subcommands.

The script calls `main`; subcommands are imported when they are invoked.
"""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.cli.exits": ("Exit",),
        "pegboard.cli.openapp": ("open_app",),
        "pegboard.cli.programloop": ("run_async",),
        "pegboard.cli.root": ("Group",),
    },
)
