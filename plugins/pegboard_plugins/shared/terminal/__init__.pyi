# Written by `poe stubs` from the table in the module beside it.
from pegboard_plugins.shared.terminal.firstpaint import painted as painted
from pegboard_plugins.shared.terminal.interruption import interruptible as interruptible
from pegboard_plugins.shared.terminal.markdownblocks import MarkdownBlocks as MarkdownBlocks
from pegboard_plugins.shared.terminal.outcome import CUT as CUT
from pegboard_plugins.shared.terminal.outcome import UNKNOWN_COST as UNKNOWN_COST
from pegboard_plugins.shared.terminal.outcome import cost_text as cost_text
from pegboard_plugins.shared.terminal.outcome import denial_of as denial_of
from pegboard_plugins.shared.terminal.outcome import exit_of_answer as exit_of_answer
from pegboard_plugins.shared.terminal.outcome import sum_costs as sum_costs
from pegboard_plugins.shared.terminal.palette import PALETTE as PALETTE
from pegboard_plugins.shared.terminal.passwordfile import password_of as password_of
from pegboard_plugins.shared.terminal.pen import Pen as Pen
from pegboard_plugins.shared.terminal.pen import colours_of as colours_of
from pegboard_plugins.shared.terminal.pen import wrapped as wrapped
from pegboard_plugins.shared.terminal.permissionlines import permission_lines as permission_lines
