"""Other programs that the chat runs, such as an editor or a pager, on its terminal or beside it."""

import asyncio
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from prompt_toolkit.application import in_terminal

from pegboard.app import UserFolders
from pegboard.processes import find_program
from pegboard.unstable import open_workspace
from pegboard_plugins.chat.notices import Notices
from pegboard_plugins.chat.surface import FooterScreen, Frames
from pegboard_plugins.chat.terminalinput import keys_wait
from pegboard_plugins.shared.terminal import TYPED_AHEAD

CLIPBOARD_S = 2.0
_PEGBOARD = (sys.executable, "-P", "-c", "from pegboard.cli.main import main; main()")
"""The command line of another Pegboard command; with `-P` it imports nothing of the directory."""
_PICTURES = (
    ("wl-paste", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-t", "image/png", "-o"),
    ("pngpaste", "-"),
)
_PAGER = "q goes back, arrows and PgUp PgDn scroll, / searches?e (end)."
"""The prompt of `less` in its own syntax, where `?e` begins the text for the end."""


class Outside:
    """A runner of other programs, on the chat's terminal or in the background without one."""

    def __init__(
        self,
        screen: FooterScreen,
        frames: Frames,
        notices: Notices,
        take_keys: Callable[[bytes], None],
    ) -> None:
        self._screen = screen
        self._frames = frames
        self._notices = notices
        self._take_keys = take_keys

    @asynccontextmanager
    async def _away(self) -> AsyncIterator[None]:
        """Give the terminal and its signals to another program within the context.

        Focus reports are off meanwhile, because the other program would echo them.
        """
        self._frames.draw()
        self._notices.end()
        try:
            async with in_terminal():
                self._screen.paused = True
                with _keys_of_signals():
                    yield
        finally:
            self._screen.paused = False
            self._notices.begin()
            self._frames.touch()

    async def run(self, *command: str, stdin: int | None = None, typed: int | None = None) -> int:
        """Run a program on the whole terminal, and return its exit code; 127 if it cannot start.

        A Pegboard command that asks a question gets the file descriptor `typed`. It writes the keys
        there that the user pressed before the question was visible.
        """
        env = None if typed is None else {**os.environ, TYPED_AHEAD: str(typed)}
        fds = () if typed is None else (typed,)
        if (program := _program(command[0])) is None:
            return 127
        try:
            async with self._away():
                process = await asyncio.create_subprocess_exec(
                    program, *command[1:], stdin=stdin, env=env, pass_fds=fds
                )
                return await process.wait()
        except OSError:
            return 127

    async def suspend(self) -> None:
        """Stop the process until the shell continues it."""
        async with self._away():
            os.kill(0, signal.SIGTSTP)

    async def pegboard(self, *arguments: str) -> int:
        """Run another Pegboard command on the whole terminal, and return its exit code."""
        return await self.run(*_PEGBOARD, *arguments)

    async def dialog(self, *arguments: str) -> int:
        """Run another Pegboard command that asks questions, and return its exit code.

        Keys pressed before the question was visible go to the chat's editor. They are inserted only
        after the caller has continued, because it may reload the chat first.
        """
        with keys_wait(), tempfile.TemporaryFile() as typed:
            code = await self.run(*_PEGBOARD, *arguments, typed=typed.fileno())
            typed.seek(0)
            keys = typed.read()
        asyncio.get_running_loop().call_soon(self._take_keys, keys)
        return code

    async def listing(self, *arguments: str) -> int:
        """Run a Pegboard command that asks nothing, and return its exit code; keep typed keys."""
        with keys_wait():
            return await self.run(*_PEGBOARD, *arguments, stdin=asyncio.subprocess.DEVNULL)

    async def pegboard_beside(self, *arguments: str) -> tuple[int, str]:
        """Run another Pegboard command in the background; return its exit code and stderr."""
        process = await asyncio.create_subprocess_exec(
            *_PEGBOARD,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, notes = await process.communicate()
        return process.returncode or 0, notes.decode("utf-8", "replace").strip()

    async def page(self, rows: Sequence[str]) -> bool:
        """Show rows in `less` until the user leaves it; return False if `less` is not installed."""
        with _written("\n".join(rows), ".txt") as file:
            code = await self.run("less", "-R", "-+F", "-+X", f"-P{_PAGER}", str(file))
            return code != 127  # noqa: PLR2004 - the shell's word for it

    async def edit(self, text: str) -> str | None:
        """Let the user edit the text in `$VISUAL` or `$EDITOR`; return None if this fails."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with _written(text, ".md") as file:
            if await self.run(*shlex.split(editor), str(file)) != 0:
                return None
            return (await asyncio.to_thread(file.read_text, "utf-8", "replace")).rstrip("\n")


@contextmanager
def _keys_of_signals() -> Iterator[None]:
    """Ignore Ctrl-C in the chat within the context, and let Ctrl-Z stop the chat as well."""
    interrupt = signal.signal(signal.SIGINT, lambda *_: None)
    stop = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, stop)
        signal.signal(signal.SIGINT, interrupt)


@contextmanager
def _written(text: str, suffix: str) -> Iterator[Path]:
    """Yield a temporary private file with the text, which exists within the context."""
    handle, name = tempfile.mkstemp(prefix="pegboard-", suffix=suffix)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        yield Path(name)
    finally:
        with suppress(OSError):
            Path(name).unlink()


def _program(name: str) -> str | None:
    """Return the path of the user's program with this name; a project's program is ignored."""
    if "/" in name:
        return name
    return find_program(name, os.environ, root=open_workspace(Path.cwd()).worktree)


def private_file(env: Mapping[str, str], name: str) -> Path | None:
    """Return a file in the user's state folder that only the user can read; create it if missing.

    The result is None if the file cannot be created.
    """
    file = UserFolders.of(env).state / name
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return None
    return file


async def clipboard_picture() -> bytes:
    """Return the clipboard's picture as PNG, or b"" without a picture or a program to read it."""
    for command in _PICTURES:
        if (program := _program(command[0])) is None:
            continue
        process = await asyncio.create_subprocess_exec(
            *(program, *command[1:]),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(CLIPBOARD_S):
                content, _ = await process.communicate()
                if content:
                    return content
    return b""
