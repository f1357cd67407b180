"""Work for a session beside its run: the files of a prompt are read, a person is asked."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from pegboard.engine.finish import ABORTED
from pegboard.errors import AbortedError

_Value = TypeVar("_Value")


class Preparations:
    """The tasks beside the runs, by session; an abort cancels them, as it does the run."""

    def __init__(self) -> None:
        self._tasks: dict[str, set[asyncio.Task[Any]]] = {}
        self._idle: set[asyncio.Task[Any]] = set()

    def __contains__(self, session_id: str) -> bool:
        return bool(self._tasks.get(session_id, set()) - self._idle)

    def of(self, session_id: str) -> tuple[asyncio.Task[Any], ...]:
        """The tasks of one session."""
        return tuple(self._tasks.get(session_id, ()))

    def all(self) -> tuple[asyncio.Task[Any], ...]:
        """The tasks of all sessions."""
        return tuple(task for tasks in self._tasks.values() for task in tasks)

    async def run(
        self, session_id: str, work: Coroutine[Any, Any, _Value], *, idle: bool = False
    ) -> _Value:
        """The result of `work`; with `idle` the session counts as resting meanwhile.

        :raises AbortedError: when the session was aborted meanwhile.
        """
        task = asyncio.create_task(work, name=f"preparation {session_id}")
        tasks = self._tasks.setdefault(session_id, set())
        tasks.add(task)
        if idle:
            self._idle.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            raise AbortedError(ABORTED) from None
        finally:
            tasks.discard(task)
            self._idle.discard(task)
            if not tasks:
                self._tasks.pop(session_id, None)
