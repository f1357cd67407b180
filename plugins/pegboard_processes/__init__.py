"""What runs programs shares: they are found, started, read within bounds, and ended with their own.

Each name is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard_processes.background import ToolProcesses as ToolProcesses
    from pegboard_processes.commandwords import may_run as may_run
    from pegboard_processes.family import MARK as MARK
    from pegboard_processes.family import Family as Family
    from pegboard_processes.family import refuse_within_tool as refuse_within_tool
    from pegboard_processes.family import within_tool as within_tool
    from pegboard_processes.hostprograms import find_program as find_program
    from pegboard_processes.hostprograms import search_path as search_path
    from pegboard_processes.hostprograms import try_program as try_program
    from pegboard_processes.process import ProgramResult as ProgramResult
    from pegboard_processes.process import run_program as run_program
    from pegboard_processes.programsearch import FoundProgram as FoundProgram
    from pegboard_processes.programsearch import ProgramSearch as ProgramSearch
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
