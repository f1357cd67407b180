"""Names for authors of subcommands of `pegboard`.

`main` is what the script calls; subcommands load late.
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
