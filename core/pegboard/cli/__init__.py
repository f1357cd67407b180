"""The command line: `main` is what the `pegboard` script calls; subcommands load late.

The names are for authors of subcommands: exit codes, and text that a terminal shows as it is.
"""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard.cli.exits import Exit as Exit
    from pegboard.cli.exits import exit_of as exit_of
    from pegboard.cli.exits import fault_of as fault_of
    from pegboard.cli.main import complain as complain
    from pegboard.cli.openapp import open_app as open_app
    from pegboard.cli.root import Group as Group
    from pegboard.cli.visibletext import exposed as exposed
    from pegboard.cli.visibletext import visible as visible
    from pegboard.cli.visibletext import without_passwords as without_passwords
    from pegboard.hooks.stalls import named_output as named_output
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
