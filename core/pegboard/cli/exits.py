"""The exit codes of the command line."""

from enum import IntEnum


class Exit(IntEnum):
    """What the process ends with; the name in lower case is the `outcome` of a JSON result."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    CONFIG = 3
    PROVIDER = 4
    DENIED = 5
    BUDGET = 6
    TIME_LIMIT = 7
    PLUGIN = 8
    INTERRUPTED = 130

    @property
    def outcome(self) -> str:
        """The word for it in a JSON result."""
        return self.name.lower()


def exit_of(code: int) -> Exit:
    """The exit with this number; any other number is a failure."""
    return Exit(code) if code in Exit.__members__.values() else Exit.FAILED
