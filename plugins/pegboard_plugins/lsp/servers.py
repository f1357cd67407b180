"""The language servers of an App: started when they are first needed, again after a crash."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pegboard import ToolError
from pegboard.schema.service import Service
from pegboard_plugins.lsp.known import Launch
from pegboard_plugins.lsp.server import Enclosed, Server

BACK_OFF_S = (1.0, 2.0, 5.0, 15.0, 60.0)
"""How long a server is not started again, after so many failures in a row."""
STEADY_S = 60.0
"""A server that has lived so long has not failed."""
MOST_SERVERS = 8

Key = tuple[str, Path]


@dataclass(slots=True)
class _Slot:
    """A server that starts or runs, and how often it failed in a row."""

    starting: "asyncio.Task[Server]"
    failures: int = 0
    retry_at: float = 0.0


class Servers:
    """One server for each project and language; `aclose` ends them all."""

    def __init__(self) -> None:
        self._slots: dict[Key, _Slot] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def get(self, launch: Launch, env: Mapping[str, str], enclosed: Enclosed) -> Server:
        """The server, ready; a caller that stops waiting does not stop its start.

        :raises ToolError: when it cannot be started, or failed a short while ago.
        """
        key = (launch.language.name, launch.root)
        slot = self._slots.get(key)
        if slot is None:
            self._make_room()
            slot = self._slots[key] = _Slot(
                asyncio.create_task(Server.start(launch, env, enclosed))
            )
        elif slot.starting.done() and not _alive(slot):
            self._again(slot, launch, env, enclosed)
        # The start has its own limit of time.
        await asyncio.wait({slot.starting})
        return slot.starting.result()

    def services(self) -> tuple[Service, ...]:
        """Those that were started, with what has become of them."""
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
        """End all servers, those that are still starting too."""
        for slot in self._slots.values():
            self._let_go(slot.starting)
        self._slots.clear()
        await asyncio.gather(*self._ending)

    def _let_go(self, start: "asyncio.Task[Server]") -> None:
        """End a server, however long who wanted another one waits."""
        task = asyncio.create_task(_end(start))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _again(
        self, slot: _Slot, launch: Launch, env: Mapping[str, str], enclosed: Enclosed
    ) -> None:
        """Start a server that has ended, unless it keeps failing."""
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
        self._let_go(slot.starting)
        slot.retry_at = 0.0
        slot.starting = asyncio.create_task(Server.start(launch, env, enclosed))

    def _make_room(self) -> None:
        if len(self._slots) >= MOST_SERVERS:
            oldest = next(iter(self._slots))
            self._let_go(self._slots.pop(oldest).starting)


def _alive(slot: _Slot) -> bool:
    start = slot.starting
    failed = start.cancelled() or start.exception() is not None
    return not failed and start.result().alive


def _lived_s(slot: _Slot, now: float) -> float:
    start = slot.starting
    if start.cancelled() or start.exception() is not None:
        return 0.0
    return now - start.result().started_at


async def _end(start: "asyncio.Task[Server]") -> None:
    if not start.done():
        start.cancel()
        # It ends at once: a start that is cancelled kills its process.
        await asyncio.wait({start})
    if not start.cancelled() and start.exception() is None:
        await start.result().aclose()
