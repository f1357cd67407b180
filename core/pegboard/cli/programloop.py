"""The event loop of the `pegboard` program, which ends the program when memory runs out.

Otherwise a task or thread that dies of MemoryError could leave the program waiting forever.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Self, TypeVar

from pegboard.cli.exits import end_without_memory
from pegboard.cli.memorylimit import is_limited

_T = TypeVar("_T")
GRACE_S = 5.0
"""What is left of the program gets so long to end in order."""
_LOOK_S = 0.05
_POOLS, _LOOPS = logging.getLogger("concurrent.futures"), logging.getLogger("asyncio")
_LOST = (
    *("Exception in callback", "Exception in default exception", "Unhandled error in exception"),
    *("Task exception was never retrieved", "Future exception was never retrieved"),
)
"""The beginnings of asyncio's messages about work that is lost."""


class _RunningProgram:
    """The task of `main`, and the loop and the thread in which it runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop, task: "asyncio.Task[Any]") -> None:
        self.task, self.thread = task, threading.get_ident()
        self._loop = loop

    def cancel(self) -> None:
        """Cancel `main` from another thread; do nothing if the loop is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.task.cancel)

    def end(self) -> None:
        """Cancel `main` in its own thread; end the process if this takes longer than `GRACE_S`."""
        self._loop.call_later(GRACE_S, end_without_memory)
        self.task.cancel()


class MemoryWatch:
    """A block in which a MemoryError in any thread, task or callback ends the program.

    The error is detected in four places:

    - in the function of a thread (`threading.excepthook`);
    - in a thread before its function, so that the starting thread waits forever
      (`sys.unraisablehook`);
    - while another error is reported (`sys.excepthook`);
    - in asyncio and in thread pools, which log the error and continue.

    Then `main` is cancelled. If `main` has not ended after `GRACE_S`, the process ends.
    """

    def __init__(self) -> None:
        self._running: _RunningProgram | None = None
        self._dead = self._is_over = False
        # Without room for the error itself, Python says that there was none.
        self._shortage = (MemoryError, SystemError) if is_limited() else (MemoryError,)
        self._hooks = threading.excepthook, sys.unraisablehook, sys.excepthook

    def __enter__(self) -> Self:
        threading.excepthook = self._thread_died
        sys.unraisablehook = self._died_unheard
        sys.excepthook = self._died_untold
        for logger in (_POOLS, _LOOPS):
            logger.addFilter(self._is_other)
        return self

    def __exit__(self, *_: object) -> None:
        threading.excepthook, sys.unraisablehook, sys.excepthook = self._hooks
        for logger in (_POOLS, _LOOPS):
            logger.removeFilter(self._is_other)
        self._is_over = True

    async def watched(self, main: Coroutine[Any, Any, _T]) -> _T:
        """Await `main` and return its result.

        :raises MemoryError: when a background task has failed with it.
        """
        task = asyncio.current_task()
        assert task is not None
        self._running = _RunningProgram(asyncio.get_running_loop(), task)
        try:
            return await main
        except asyncio.CancelledError:
            if self._dead:
                raise MemoryError from None
            raise
        finally:
            self._running = None

    def _thread_died(self, args: threading.ExceptHookArgs) -> None:
        if issubclass(args.exc_type, self._shortage):
            self._end()
        else:
            self._hooks[0](args)

    def _died_unheard(self, args: "sys.UnraisableHookArgs") -> None:
        # Whatever it says: on the way here the error may have become another for lack of memory.
        if isinstance(getattr(args.object, "__self__", None), threading.Thread):
            self._end()
        else:
            self._hooks[1](args)

    def _died_untold(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:  # noqa: ANN401 - as Python calls it
        if issubclass(kind, self._shortage):
            self._end()
        else:
            self._hooks[2](kind, error, trace)

    def _is_other(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, self._shortage):
            return True
        if record.name == _LOOPS.name and not str(record.msg).startswith(_LOST):
            return True
        self._end()
        return False

    def _end(self) -> None:
        self._dead = True
        running = self._running
        if running is not None and running.thread == threading.get_ident():
            running.end()
            return
        deadline, is_asked = time.monotonic() + GRACE_S, running is None
        while self._running is running and not self._is_over:
            if not is_asked and running is not None:
                with suppress(MemoryError):
                    running.cancel()
                    is_asked = True
            if time.monotonic() > deadline:
                end_without_memory()
            time.sleep(_LOOK_S)


def run_async(main: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine like `asyncio.run`, on a loop that starts no thread for each process.

    Python 3.12 watches processes by file descriptors by default. Python 3.11 starts a thread for
    each, which takes 0.7 ms per tool call.

    :raises MemoryError: also when a background task has failed with it.
    """
    if sys.version_info < (3, 12) and sys.platform == "linux":
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    with MemoryWatch() as watch:
        return asyncio.run(watch.watched(main))
