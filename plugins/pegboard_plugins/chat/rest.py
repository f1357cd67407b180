"""Commands that wait until the session is idle."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pegboard.errors import AbortedError, InvalidInputError

REST_S = 60
"""The longest wait for the end of a turn."""


class IdleWait:
    """A queue of commands that wait for an idle session and then run one at a time."""

    def __init__(self, goes_on: Callable[[], bool], touch: Callable[[], None]) -> None:
        self._goes_on = goes_on
        self._touch = touch
        self._one_by_one = asyncio.Lock()
        self._changed = asyncio.Event()
        self._waits: dict[asyncio.Timeout, str] = {}

    @property
    def notice(self) -> str:
        """A notice that names the waiting commands, or "" if no command waits."""
        waits = ", ".join(self._waits.values())
        return f"{waits} waits for the end of the turn; Esc cancels it" if waits else ""

    def look(self) -> None:
        """Let the waiting commands check again whether the session is idle."""
        self._changed.set()

    def give_up(self) -> bool:
        """Cancel all waits; return whether a command waited."""
        waits, self._waits = self._waits, {}
        for limit in waits:
            limit.reschedule(asyncio.get_running_loop().time())
        return bool(waits)

    @asynccontextmanager
    async def before(self, command: str) -> AsyncIterator[None]:
        """Enter the context once the session is idle; other commands wait until the context ends.

        :raises AbortedError: when the user cancels the wait.
        :raises InvalidInputError: when the session still works after `REST_S` seconds.
        """
        limit = asyncio.timeout(REST_S)
        self._waits[limit] = command
        try:
            async with limit:
                await self._begun()
        except TimeoutError as error:
            if limit in self._waits:
                text = f"{command}: the turn is still running after {REST_S} s; Esc stops it"
                raise InvalidInputError(text) from error
            raise AbortedError(f"{command} was not done") from error
        finally:
            self._waits.pop(limit, None)
            self._touch()
        try:
            yield
        finally:
            self._one_by_one.release()

    async def _begun(self) -> None:
        """Wait until no other command runs and the session is idle."""
        await self._one_by_one.acquire()
        try:
            self._touch()
            while self._goes_on():
                self._changed.clear()
                await self._changed.wait()  # `before` has the limit
        except asyncio.CancelledError:
            self._one_by_one.release()
            raise
