# Written by `poe stubs` from the table in the module beside it.
from pegboard.cli.exits import Exit as Exit
from pegboard.cli.openapp import open_app as open_app
from pegboard.cli.programloop import run_async as run_async
from pegboard.cli.root import Group as Group
