"""The entry point of the command line: the `pegboard` script calls `main`."""

import atexit
import errno
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from pegboard.cli.exits import Exit, end_at_once_when_interrupted, end_without_memory, fault_of

GARBAGE_AFTER = 100_000
"""The number of new objects after which garbage is collected: more than a start makes.

At Python's own 700 that takes a start 10 to 20 ms.
"""
_PR_SET_DUMPABLE = 4


def main() -> NoReturn:
    """Run the command line and end the process with an exit code of `pegboard.cli.exits`."""
    if sys.argv[1:] == ["--version"]:
        _leave(_say_version())
    end_at_once_when_interrupted()
    # A parent may ignore it, and a command's exit code would then never be known.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    gc.set_threshold(GARBAGE_AFTER)
    keep_memory_private()
    _open_what_is_closed()
    _accept_any_character()
    try:
        _leave(run_command_line(sys.argv[1:]))
    except MemoryError:  # also of what says what failed
        end_without_memory()
    except OSError as error:  # stderr cannot be written; EIO: its terminal was closed
        _leave(Exit.INTERRUPTED if error.errno == errno.EIO else Exit.FAILED)


def _say_version() -> int:
    from pegboard import __version__

    try:
        sys.stdout.write(f"pegboard {__version__}\n")
        sys.stdout.flush()
    except OSError:
        return Exit.FAILED
    return 0


def run_command_line(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; a failure is written as one line to stderr."""
    import click  # 30 ms that `--version` saves

    from pegboard.cli.root import root
    from pegboard.errors import PegboardError, PluginError

    try:
        code = root.main(args=list(arguments), prog_name="pegboard", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error, click.Abort) and sys.stderr.isatty():
            sys.stderr.write("\n")  # the line of the question that was left
        return Exit.INTERRUPTED
    except PegboardError as error:
        cause = error.__cause__ if isinstance(error, PluginError) else None
        complain(f"{error}{_details(cause) if cause else ''}")
        return error.exit_code
    except BrokenPipeError:
        # Nor may the interpreter flush into the pipe whose reader has closed it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except Exception as error:  # noqa: BLE001 - the last frame: a traceback belongs in a file
        complain(fault_of(error) or f"{type(error).__name__}: {error}{_details(error)}")
        return Exit.USAGE if isinstance(error, UnicodeEncodeError) else Exit.FAILED
    return int(code) if code else 0


def complain(text: str) -> None:
    """Write an error on one line of stderr, without control characters and secrets."""
    from pegboard.hooks.stalls import PRINTING  # only what fails needs it
    from pegboard.kit.redact import secret_values, without_values

    PRINTING.set("")  # a signal may find a plugin at work, which does not say this

    text = without_values(" ".join(text.split()), secret_values(os.environ))
    sys.stderr.write(f"error: {''.join(map(_spelt, text))}\n")
    sys.stderr.flush()


def _spelt(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def _leave(code: int) -> NoReturn:
    """End the process at once, even if a plugin's thread hangs.

    All is closed by then, and the normal exit of the interpreter takes 40 to 100 ms.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - what others want done at the end; no public name
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def keep_memory_private() -> None:
    """Prevent other processes of the user from reading this process's memory and environment.

    Both contain API keys, and a tool's process can find this process by `$PPID`. Root can still
    read them; see prctl(2), PR_SET_DUMPABLE.
    """
    if sys.platform == "linux":
        import ctypes  # 2 ms, and none for who only embeds us

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _open_what_is_closed() -> None:
    """Replace standard streams that the parent process has closed, lowest number first."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - to the end


def _accept_any_character() -> None:
    """Print a question mark for characters that the terminal's encoding lacks, and never fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _details(error: BaseException) -> str:
    """Write the traceback of `error` to a file; return its path, or why it could not be written."""
    import traceback  # 15 ms that a command without a failure saves
    from time import strftime

    from pegboard.errors import PegboardError
    from pegboard.kit.redact import redact, secret_values
    from pegboard.paths import UserFolders

    text = redact("".join(traceback.format_exception(error)), secret_values(os.environ))
    name = f"crash-{strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    try:
        file = UserFolders.of(os.environ).state / name
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
    except (OSError, PegboardError) as failure:
        return f"; the details are in no file ({failure})"
    return f"; the details are in {file}"
