"""Commands to terminal interfaces, which clients fetch one at a time."""

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

from pegboard.schema.wire import Rest

MOST_ORDERS = 100
"""Orders of one directory that wait; a further one replaces the oldest."""


class InterfaceOrder(Rest, frozen=True):
    """A command to a terminal interface: the path of a `/tui` route, and the body for the route."""

    path: str
    body: Any


class Orders:
    """The queues of commands to terminal interfaces, one queue per directory.

    A command is stored only if a client has asked for commands of its directory before.
    """

    def __init__(self) -> None:
        self._waiting: dict[Path, deque[InterfaceOrder]] = {}
        self._changed = asyncio.Event()
        self._is_closed = False

    def add(self, directory: Path, order: InterfaceOrder) -> None:
        """Store a command, if a client has asked for commands of the directory."""
        if directory in self._waiting:
            self._waiting[directory].append(order)
            self._wake()

    async def next(self, directory: Path) -> InterfaceOrder | None:
        """Remove and return the directory's oldest command; None when the server stops.

        The wait has no time limit, because commands come from users.
        """
        waiting = self._waiting.setdefault(directory, deque(maxlen=MOST_ORDERS))
        while not waiting:
            if self._is_closed:
                return None
            await self._changed.wait()
        return waiting.popleft()

    def close(self) -> None:
        """End all waits for commands when the server stops."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
