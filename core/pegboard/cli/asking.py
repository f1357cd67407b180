"""Permission requests on a terminal: the question, the key, the reply."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TextIO

from pegboard.cli.render import always_line, request_lines
from pegboard.cli.screen import Screen
from pegboard.errors import NotFoundError
from pegboard.schema.permission import PermissionRequest, Reply

QUESTION = "Allow? [y]es once, [a]lways, [n]o, or what to do instead: "
_LINE_BYTES = 4096
"""A terminal gives no longer line than this."""
_WORDS: dict[str, Reply] = {
    "y": "once",
    "yes": "once",
    "a": "always",
    "always": "always",
    "n": "reject",
    "no": "reject",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What was typed at the question; a message rejects and says what to do instead."""

    reply: Reply
    message: str | None = None


def read_reply(line: str | None) -> Typed | None:
    """The reply that a line means: None for an empty one; the end of input rejects."""
    if line is None:
        return Typed(reply="reject")
    word = line.strip()
    if not word:
        return None
    if word.lower() in _WORDS:
        return Typed(reply=_WORDS[word.lower()])
    return Typed(reply="reject", message=word)


class Asker:
    """Asks the person at the terminal, one request after the other."""

    def __init__(
        self,
        screen: Screen,
        terminal: TextIO,
        reply: Callable[[str, Reply, str | None], Awaitable[object]],
    ) -> None:
        self._screen = screen
        self._terminal = terminal
        self._reply = reply

    async def ask(self, request: PermissionRequest) -> None:
        """Ask until there is a reply, and pass it on; without a time limit, for it is a person."""
        for line in (*request_lines(request), always_line(request)):
            self._screen.line(line)
        _forget_typed(self._terminal.fileno())
        typed = None
        while typed is None:
            self._screen.question(QUESTION)
            typed = read_reply(await _read_line(self._terminal.fileno()))
        try:
            await self._reply(request.id, typed.reply, typed.message)
        except NotFoundError:
            return  # the call was stopped while the question stood


def _forget_typed(terminal: int) -> None:
    """Drop what was typed before the question: it cannot be meant as its answer."""
    import termios

    termios.tcflush(terminal, termios.TCIFLUSH)


async def _read_line(terminal: int) -> str | None:
    """The next line, None at the end of input."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(terminal, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(terminal)
    line = os.read(terminal, _LINE_BYTES)
    return line.decode(errors="replace") if line else None
