# Written by `poe stubs` from the table in the module beside it.
from pegboard.contract.results import Block as Block
from pegboard.contract.results import Span as Span
from pegboard.contract.results import SpanLine as SpanLine
from pegboard.contract.results import SpanStyle as SpanStyle
from pegboard.display.blocklines import plain_line as plain_line
from pegboard.display.defaultblocks import block_of_text as block_of_text
from pegboard.display.defaultblocks import default_block as default_block
from pegboard.display.visibletext import escape_controls as escape_controls
