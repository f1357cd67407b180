"""The language servers of an App, started at first use and restarted after a crash."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pegboard import ToolError
from pegboard.processes import Enclosed
from pegboard.schema.config import Service
from pegboard_plugins.lsp.known import Launch
from pegboard_plugins.lsp.server import LanguageServer

BACK_OFF_S = (1.0, 2.0, 5.0, 15.0, 60.0)
"""How long a server is not started again, after so many failures in a row."""
STEADY_S = 60.0
"""A server that has lived so long has not failed."""
MOST_SERVERS = 8

Key = tuple[str, Path]


@dataclass(slots=True)
class _Slot:
    """A starting or running language server, with how many use it and its failures in a row."""

    starting: "asyncio.Task[LanguageServer]"
    users: int = 0
    failures: int = 0
    retry_at: float = 0.0


class LanguageServers:
    """The running language servers, one for each language and project root."""

    def __init__(self) -> None:
        self._slots: OrderedDict[Key, _Slot] = OrderedDict()
        self._ending: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def using(
        self, launch: Launch, env: Mapping[str, str], enclosed: Enclosed, told: Iterable[Path] = ()
    ) -> AsyncIterator[LanguageServer]:
        """Yield the running server; first notify it of changed files, beginning with `told`.

        If the caller is cancelled, the start goes on. A server in use is never ended to make room.

        :raises ToolError: when the server cannot be started, or failed a short while ago; when the
            maximum of servers is in use.
        """
        key = (launch.language.name, launch.root)
        async with self._started(key, launch, env, enclosed) as slot:
            server = slot.starting.result()
            if await server.refresh(told):
                yield server
                return
            self._drop(key, slot)
        async with self._started(key, launch, env, enclosed) as slot:
            yield slot.starting.result()

    @asynccontextmanager
    async def _started(
        self, key: Key, launch: Launch, env: Mapping[str, str], enclosed: Enclosed
    ) -> AsyncIterator[_Slot]:
        slot = self._slots.get(key)
        if slot is None:
            self._make_room()
            start = LanguageServer.start(launch, env, enclosed)
            slot = self._slots[key] = _Slot(asyncio.create_task(start))
        elif slot.starting.done() and not _alive(slot):
            self._again(slot, launch, env, enclosed)
        self._slots.move_to_end(key)
        slot.users += 1
        try:
            # The start has its own limit of time.
            await asyncio.wait({slot.starting})
            yield slot
        finally:
            slot.users -= 1
            if not slot.users and self._slots.get(key) is not slot:
                self._end_later(slot.starting)

    def services(self) -> tuple[Service, ...]:
        """Return the language servers that were started, with their states."""
        return tuple(
            Service(
                kind="lsp",
                name=name,
                root=str(root),
                state="running" if not slot.starting.done() or _alive(slot) else "failed",
            )
            for (name, root), slot in self._slots.items()
        )

    async def aclose(self) -> None:
        """End all language servers, even servers that are still starting."""
        for slot in self._slots.values():
            self._end_later(slot.starting)
        self._slots.clear()
        await asyncio.gather(*self._ending)

    def _end_later(self, start: "asyncio.Task[LanguageServer]") -> None:
        """End a server in the background, so that the caller does not wait."""
        task = asyncio.create_task(_end(start))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _again(
        self, slot: _Slot, launch: Launch, env: Mapping[str, str], enclosed: Enclosed
    ) -> None:
        """Restart a language server that has ended, unless it failed too often."""
        now = time.monotonic()
        if not slot.retry_at:
            steady = _lived_s(slot, now) > STEADY_S
            slot.failures = 0 if steady else slot.failures + 1
            wait_s = BACK_OFF_S[min(slot.failures, len(BACK_OFF_S)) - 1] if slot.failures else 0.0
            slot.retry_at = now + wait_s if slot.failures > 1 else now
        if now < slot.retry_at:
            raise ToolError(
                f"the language server {launch.language.name} has failed {slot.failures} times;"
                f" it is started again in {slot.retry_at - now:.0f} s at the earliest"
            )
        self._end_later(slot.starting)
        slot.retry_at = 0.0
        slot.starting = asyncio.create_task(LanguageServer.start(launch, env, enclosed))

    def _make_room(self) -> None:
        """End the server that was unused for the longest time."""
        if len(self._slots) < MOST_SERVERS:
            return
        idle = next(((key, slot) for key, slot in self._slots.items() if not slot.users), None)
        if idle is None:
            raise ToolError(f"all {MOST_SERVERS} language servers are in use: ask again later")
        self._drop(*idle)

    def _drop(self, key: Key, slot: _Slot) -> None:
        """Forget a server; end it now, or when its last user is done."""
        if self._slots.get(key) is slot:
            del self._slots[key]
            if not slot.users:
                self._end_later(slot.starting)


def _alive(slot: _Slot) -> bool:
    start = slot.starting
    failed = start.cancelled() or start.exception() is not None
    return not failed and start.result().alive


def _lived_s(slot: _Slot, now: float) -> float:
    start = slot.starting
    if start.cancelled() or start.exception() is not None:
        return 0.0
    return now - start.result().started_at


async def _end(start: "asyncio.Task[LanguageServer]") -> None:
    if not start.done():
        start.cancel()
        # It ends at once: a start that is cancelled kills its process.
        await asyncio.wait({start})
    if not start.cancelled() and start.exception() is None:
        await start.result().aclose()
