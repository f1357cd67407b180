"""The terminals of users by project, with their latest output and their access tickets."""

import asyncio
import secrets
import time
from codecs import getincrementaldecoder
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from pegboard import App
from pegboard.errors import NotFoundError
from pegboard.schema.wire import Rest, Wire, to_json
from pegboard_plugins.server.feed import EventFeed
from pegboard_plugins.server.responses import TooManyError
from pegboard_plugins.server.shells import TerminalOrder, open_terminal
from pegboard_plugins.server.terminal import Terminal, TerminalSize

MOST_TERMINALS = 32
"""Of one project at a time."""
KEPT_UNITS = 2 << 20
"""What is shown again to who comes back, in the units that clients count: UTF-16's."""
SENT_UNITS = 64 << 10
PIECE_BYTES = 16 << 10
"""What is written letter by letter is kept in pieces of at least this."""
TICKET_S = 60
TICKET_BYTES = 32
MOST_TICKETS = 1000


class Pty(Wire, frozen=True):
    """A terminal as clients see it; `exit_code` is set when the terminal's program has ended."""

    id: str
    title: str
    command: str
    args: tuple[str, ...]
    cwd: str
    status: Literal["running", "exited"]
    pid: int
    exit_code: int | None = None


class PtyToken(Rest, frozen=True):
    """A ticket that opens one connection, for clients that cannot send headers."""

    ticket: str
    expires_in: int = msgspec.field(name="expires_in")


class ScreenText:
    """The latest output of a terminal, with each character's position in the whole output."""

    def __init__(self) -> None:
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._pieces: deque[tuple[int, bytearray]] = deque()
        self._more = asyncio.Event()
        self.end = 0
        self.closed = False

    def write(self, content: bytes) -> None:
        """Add output of the terminal's program."""
        units = self._decode(content).encode("utf-16-le")
        if not units:
            return
        if self._pieces and len(self._pieces[-1][1]) < PIECE_BYTES:
            self._pieces[-1][1].extend(units)
        else:
            self._pieces.append((self.end, bytearray(units)))
        self.end += len(units) // 2
        while self.end - self._pieces[0][0] > KEPT_UNITS and len(self._pieces) > 1:
            self._pieces.popleft()
        self._more.set()

    def close(self) -> None:
        """Mark the output as complete, so that waiting clients continue."""
        self.closed = True
        self._more.set()

    def after(self, place: int) -> tuple[str, int]:
        """Return the output from position `place` on, and the position after this output.

        Output that was dropped is skipped. The text is empty if there is no output.
        """
        for start, units in self._pieces:
            end = start + len(units) // 2
            if end > place:
                first = max(place - start, 0)
                last = first + SENT_UNITS
                last += _is_first_half(units[2 * last - 2 : 2 * last])
                chosen = units[2 * first : 2 * last]
                text = chosen.decode("utf-16-le", "replace")
                return text, max(place, start) + len(chosen) // 2
        return "", self.end

    async def more(self, place: int) -> None:
        """Wait, without a time limit, for output after position `place` or for its end."""
        while self.end <= place and not self.closed:
            self._more.clear()
            await self._more.wait()


def _is_first_half(unit: bytes | bytearray) -> bool:
    """Return whether this unit of UTF-16 is the first of a surrogate pair."""
    return len(unit) == 2 and 0xD8 <= unit[1] < 0xDC  # noqa: PLR2004 - as UTF-16 has it


@dataclass(slots=True, kw_only=True)
class OpenTerminal:
    """A terminal with its screen text, its project, and the task that waits for its end."""

    pty: Pty
    directory: Path
    terminal: Terminal
    screen: ScreenText
    watch: "asyncio.Task[None] | None" = field(default=None)


class Terminals:
    """All terminals of the server, by project; closing this object ends the terminals."""

    def __init__(self, feed: EventFeed) -> None:
        self._feed = feed
        self._opened: dict[str, OpenTerminal] = {}
        self._tickets: dict[str, tuple[str, float]] = {}
        self._starting = asyncio.Lock()

    async def open(self, app: App, order: TerminalOrder, title: str | None) -> Pty:
        """Open a terminal of the project.

        :raises TooManyError: when there are `MOST_TERMINALS` already.
        :raises InvalidInputError: when there is no such program or folder.
        :raises PermissionDeniedError: for a folder outside of the project.
        """
        async with self._starting:
            if len(self.of(app.workspace.directory)) >= MOST_TERMINALS:
                raise TooManyError(f"{MOST_TERMINALS} terminals are open here already")
            return await self._open(app, order, title)

    async def _open(self, app: App, order: TerminalOrder, title: str | None) -> Pty:
        directory, screen = app.workspace.directory, ScreenText()
        terminal = await open_terminal(app, order, screen.write)
        id_ = self._feed.ids.new("pty")
        pty = Pty(
            id=id_,
            title=title or f"Terminal {id_[-4:]}",
            command=terminal.command[0],
            args=terminal.command[1:],
            cwd=str(terminal.cwd),
            status="running",
            pid=terminal.pid,
        )
        opened = OpenTerminal(pty=pty, directory=directory, terminal=terminal, screen=screen)
        self._opened[id_] = opened
        self._say("pty.created", opened, {"info": to_json(pty)})
        opened.watch = asyncio.create_task(self._watch(opened), name=f"terminal {id_}")
        return pty

    def of(self, directory: Path) -> tuple[Pty, ...]:
        """Return the terminals of a project."""
        return tuple(each.pty for each in self._opened.values() if each.directory == directory)

    def get(self, directory: Path, pty_id: str) -> OpenTerminal:
        """Return the terminal.

        :raises NotFoundError: when the project has none with this id.
        """
        opened = self._opened.get(pty_id)
        if opened is None or opened.directory != directory:
            raise NotFoundError("terminal", pty_id[:80])
        return opened

    def update(self, opened: OpenTerminal, title: str | None, size: TerminalSize | None) -> Pty:
        """Change the terminal's title or size.

        :raises InvalidInputError: when there is no such size.
        """
        if size is not None:
            opened.terminal.resize(size)
        if title:
            opened.pty = replace(opened.pty, title=title)
        self._say("pty.updated", opened, {"info": to_json(opened.pty)})
        return opened.pty

    async def remove(self, opened: OpenTerminal) -> None:
        """End a terminal with all its processes; a second call does nothing."""
        if self._opened.pop(opened.pty.id, None) is None:
            return
        await opened.terminal.aclose()
        opened.screen.close()
        self._say("pty.deleted", opened, {"id": opened.pty.id})

    async def close(self, directory: Path) -> None:
        """End the terminals of a project."""
        of_it = [each for each in self._opened.values() if each.directory == directory]
        await asyncio.gather(*(self._ended(each) for each in of_it))

    async def aclose(self) -> None:
        """End all terminals."""
        await asyncio.gather(*(self._ended(each) for each in tuple(self._opened.values())))

    def ticket(self, opened: OpenTerminal) -> PtyToken:
        """Return a ticket that opens one connection to the terminal, within a minute."""
        now = time.monotonic()
        fresh = [(key, each) for key, each in self._tickets.items() if each[1] > now]
        self._tickets = dict(fresh[-MOST_TICKETS:])
        ticket = secrets.token_urlsafe(TICKET_BYTES)
        self._tickets[ticket] = (opened.pty.id, now + TICKET_S)
        return PtyToken(ticket=ticket, expires_in=TICKET_S)

    def admits(self, ticket: str, pty_id: str) -> bool:
        """Return whether the ticket opens a connection to this terminal; each ticket works once."""
        known = self._tickets.pop(ticket, None)
        return known is not None and known[0] == pty_id and known[1] > time.monotonic()

    async def _watch(self, opened: OpenTerminal) -> None:
        """Wait, without a limit, for the end of a terminal's program; then remove the terminal."""
        code = await asyncio.shield(opened.terminal.exited)
        if opened.pty.id not in self._opened:
            return
        opened.pty = replace(opened.pty, status="exited", exit_code=code)
        self._say("pty.exited", opened, {"id": opened.pty.id, "exitCode": code})
        await self.remove(opened)

    async def _ended(self, opened: OpenTerminal) -> None:
        await self.remove(opened)
        if opened.watch is not None:
            opened.watch.cancel()
            await asyncio.gather(opened.watch, return_exceptions=True)

    def _say(self, kind: str, opened: OpenTerminal, properties: dict[str, object]) -> None:
        self._feed.say(kind, properties, directory=opened.directory)
