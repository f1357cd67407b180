# Written by `poe stubs` from the table in the module beside it.
from pegboard.enclosing import BackgroundProcess as BackgroundProcess
from pegboard.enclosing import Enclosed as Enclosed
from pegboard.enclosing import Encloser as Encloser
from pegboard.enclosing import Enclosing as Enclosing
from pegboard.enclosing import Enclosure as Enclosure
from pegboard.enclosing import OpenProcesses as OpenProcesses
from pegboard.enclosing import ProcessResult as ProcessResult
from pegboard.enclosing import Processes as Processes
from pegboard.enclosing import Site as Site
from pegboard.kit.hosts import Network as Network
from pegboard.processes.hostprograms import find_program as find_program
from pegboard.processes.process import ProgramResult as ProgramResult
from pegboard.processes.process import add_start_condition as add_start_condition
from pegboard.processes.process import may_start as may_start
from pegboard.processes.process import run_program as run_program
from pegboard.processes.programsearch import FoundProgram as FoundProgram
