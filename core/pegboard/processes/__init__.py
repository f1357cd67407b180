"""The public names for plugins that run programs or put them in a sandbox."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.enclosing": (
            "BackgroundProcess",
            "Enclosed",
            "Encloser",
            "Enclosing",
            "Enclosure",
            "OpenProcesses",
            "ProcessResult",
            "Processes",
            "Site",
        ),
        "pegboard.kit.hosts": ("Network",),
        "pegboard.processes.hostprograms": ("find_program",),
        "pegboard.processes.process": (
            "ProgramResult",
            "add_start_condition",
            "may_start",
            "run_program",
        ),
        "pegboard.processes.programsearch": ("FoundProgram",),
    },
)
