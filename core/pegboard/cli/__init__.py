"""The command line: `main` is what the `pegboard` script calls; subcommands load late.

The names are for authors of subcommands: exit codes, text that a terminal shows as it is, and
blocks and Markdown drawn for one.
"""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard.cli.blocklines import block_lines as block_lines
    from pegboard.cli.blocklines import plain_line as plain_line
    from pegboard.cli.blocklines import shown_line as shown_line
    from pegboard.cli.blocklines import with_note as with_note
    from pegboard.cli.exits import CUT as CUT
    from pegboard.cli.exits import Exit as Exit
    from pegboard.cli.exits import denial_of as denial_of
    from pegboard.cli.exits import exit_of as exit_of
    from pegboard.cli.exits import exit_of_answer as exit_of_answer
    from pegboard.cli.faults import fault_of as fault_of
    from pegboard.cli.main import complain as complain
    from pegboard.cli.markdownblocks import MarkdownBlocks as MarkdownBlocks
    from pegboard.cli.palette import PALETTE as PALETTE
    from pegboard.cli.passwordfile import password_of as password_of
    from pegboard.cli.pen import Pen as Pen
    from pegboard.cli.pen import colours_of as colours_of
    from pegboard.cli.pen import wrapped as wrapped
    from pegboard.cli.root import Group as Group
    from pegboard.cli.visibletext import exposed as exposed
    from pegboard.cli.visibletext import visible as visible
    from pegboard.cli.visibletext import without_passwords as without_passwords
    from pegboard.hooks.stalls import named_output as named_output
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
