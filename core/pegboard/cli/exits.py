"""The exit codes of the command line, and messages for failures such as a full disk."""

import errno
import os
import signal
from collections.abc import Mapping
from enum import IntEnum
from types import FrameType
from typing import NoReturn

OUT_OF_MEMORY = "the memory is used up: close other programs, or raise the limit (`ulimit -v`)"
_LAST_WORDS = f"error: {OUT_OF_MEMORY}\n".encode()


class Exit(IntEnum):
    """The exit code of the process; its lower-case name is the `outcome` in a JSON result."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    CONFIG = 3
    PROVIDER = 4
    DENIED = 5
    BUDGET = 6
    TIME_LIMIT = 7
    PLUGIN = 8
    SCHEMA = 9
    INTERRUPTED = 130

    @property
    def outcome(self) -> str:
        """The name of the exit code for the field `outcome` of a JSON result."""
        return self.name.lower()


def exit_of(code: int) -> Exit:
    """Return the exit with this number; an unknown number counts as a failure."""
    return Exit(code) if code in Exit.__members__.values() else Exit.FAILED


_OTHER_FOLDERS = "PEGBOARD_DATA_DIR, _STATE_DIR, _CONFIG_DIR and _CACHE_DIR name other folders"
_ROOM = "make room on the disk, or where the output goes"
_MEMORY = "close other programs, or raise the limit (`ulimit -v`)"
_THREADS = "memory (`ulimit -v`) or the user's processes (`ulimit -u`) are used up"
_WAYS_OUT: Mapping[int, str] = {
    errno.EACCES: f"its owner can let you in; {_OTHER_FOLDERS}",
    errno.EAGAIN: _THREADS,
    errno.EDQUOT: _ROOM,
    errno.EIO: "the disk, or what stands for one, is failing",
    errno.EMFILE: "raise the limit of open files (`ulimit -n`)",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: _MEMORY,
    errno.ENOSPC: _ROOM,
    errno.EROFS: _OTHER_FOLDERS,
}
_NO_THREAD = "can't start new thread"
"""Python's message for an error that has no class of its own."""


def fault_of(error: BaseException) -> str:
    """Explain which resource the machine lacks or refuses, with advice; "" for other failures."""
    match error:
        case BaseExceptionGroup(exceptions=inner):
            faults = [fault_of(each) for each in inner]
            return faults[0] if all(faults) else ""
        case MemoryError():
            return OUT_OF_MEMORY
        case UnicodeEncodeError():  # an argument, or the name of a file
            from pegboard.schema.wire import not_utf8  # only this failure needs it

            return not_utf8(error)
        case RuntimeError() if str(error) == _NO_THREAD:
            return f"no thread can be started: {_THREADS}"
        case OSError(errno=int(number)) if number in _WAYS_OUT:
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror}: {_WAYS_OUT[number]}"
        case _:
            return ""


def end_without_memory() -> NoReturn:
    """End the process at once, with a message; this allocates no memory."""
    os.write(2, _LAST_WORDS)
    os._exit(1)


def end_at_once_when_interrupted() -> None:
    """Make Ctrl-C end the process silently, for the time until a command starts.

    Nothing needs to be cleaned up until then, and an interrupted import would raise errors.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)


def _end_at_once(_number: int, _frame: FrameType | None) -> None:
    os._exit(Exit.INTERRUPTED)


def interrupt_as_python_does() -> None:
    """Make Ctrl-C raise KeyboardInterrupt again, which commands handle."""
    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
