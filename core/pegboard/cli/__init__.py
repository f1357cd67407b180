"""The command line: `main` is what the `pegboard` script calls; subcommands load late.

The names are for authors of subcommands: exit codes, and the one line that a failure is told in.
"""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard.cli.exits import OUT_OF_MEMORY as OUT_OF_MEMORY
    from pegboard.cli.exits import Exit as Exit
    from pegboard.cli.exits import end_without_memory as end_without_memory
    from pegboard.cli.exits import exit_of as exit_of
    from pegboard.cli.exits import fault_of as fault_of
    from pegboard.cli.main import complain as complain
    from pegboard.cli.root import Group as Group
    from pegboard.hooks.stalls import PRINTING as PRINTING
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
