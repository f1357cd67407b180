"""What front ends share: tool calls as blocks, blocks and Markdown drawn for a terminal.

Also the App of one command, and text from elsewhere in letters that no terminal obeys.

Each name is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard_terminal.blocklines import block_lines as block_lines
    from pegboard_terminal.blocklines import plain_line as plain_line
    from pegboard_terminal.blocklines import shown_line as shown_line
    from pegboard_terminal.blocklines import with_note as with_note
    from pegboard_terminal.defaultblocks import CallBlocks as CallBlocks
    from pegboard_terminal.defaultblocks import block_of_text as block_of_text
    from pegboard_terminal.defaultblocks import counted as counted
    from pegboard_terminal.defaultblocks import default_block as default_block
    from pegboard_terminal.defaultblocks import given_block as given_block
    from pegboard_terminal.defaultblocks import lines_of as lines_of
    from pegboard_terminal.defaultblocks import one_line as one_line
    from pegboard_terminal.defaultblocks import subject_of as subject_of
    from pegboard_terminal.defaultblocks import todo_lines as todo_lines
    from pegboard_terminal.firstpaint import painted as painted
    from pegboard_terminal.interruption import interruptible as interruptible
    from pegboard_terminal.markdownblocks import MarkdownBlocks as MarkdownBlocks
    from pegboard_terminal.namedoutput import named_output as named_output
    from pegboard_terminal.openapp import open_app as open_app
    from pegboard_terminal.outcome import CUT as CUT
    from pegboard_terminal.outcome import UNKNOWN_COST as UNKNOWN_COST
    from pegboard_terminal.outcome import cost_text as cost_text
    from pegboard_terminal.outcome import denial_of as denial_of
    from pegboard_terminal.outcome import exit_of_answer as exit_of_answer
    from pegboard_terminal.outcome import sum_costs as sum_costs
    from pegboard_terminal.palette import PALETTE as PALETTE
    from pegboard_terminal.passwordfile import password_of as password_of
    from pegboard_terminal.pen import Pen as Pen
    from pegboard_terminal.pen import colours_of as colours_of
    from pegboard_terminal.pen import wrapped as wrapped
    from pegboard_terminal.permissionlines import permission_lines as permission_lines
    from pegboard_terminal.programloop import run_async as run_async
    from pegboard_terminal.visibletext import exposed as exposed
    from pegboard_terminal.visibletext import visible as visible
    from pegboard_terminal.visibletext import without_passwords as without_passwords
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
