"""The detection of plugin code that blocks the event loop.

While hooks or tools run, a timer on the loop records four times a second that the loop runs.
A thread compares the time and reports each stall once. Timer and thread sleep when no hook or
tool runs, and when all of them wait for a user.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from pegboard.kit.threads import starved
from pegboard.policy.clock import Clock

PRINTING: ContextVar[str] = ContextVar("pegboard_printing", default="")
"""The plugin whose code runs here; "" for Pegboard's own."""


STALL_S = 1.0
"""A loop that has not turned for so long is held."""
HANG_S = 5.0
"""The time after which the thread itself warns the user: the loop may never run again."""
BEAT_S = 0.25
FRAMES = 3
_LOOP = ("asyncio", "selectors.py")
_CORE = f"{Path(__file__).resolve().parent.parent}{os.sep}"


class Holder(msgspec.Struct, frozen=True):
    """A plugin and the part of it that is running, such as "hook event" or "tool bash".

    If `is_builtin` is set, stalls are only logged, because users can neither fix nor disable the
    plugin.
    """

    plugin: str
    what: str
    is_builtin: bool = False


_Call = tuple[Holder, Clock]


class Stalls:
    """The detector of plugin code that blocks one App's event loop for too long.

    The loop calls `report` when it runs again, with the plugin that blocked it and a message with
    the code location. A stall outside all known calls is only logged, since its plugin is unknown.
    """

    def __init__(self, report: Callable[[Holder, str], None]) -> None:
        self._report = report
        self._running: dict[asyncio.Task[object], _Call] = {}
        self._loop_thread = self._loop_id = 0
        self._turned_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None
        self._awake = threading.Event()
        self._closed = threading.Event()

    def running(self, holder: Holder) -> AbstractContextManager[None]:
        """Return a context manager that attributes the current task's work to the holder."""
        task = asyncio.current_task()
        assert task is not None
        return _RunningCall(self, task, holder)

    def begin(self, task: asyncio.Task[object], holder: Holder) -> _Call | None:
        """Record that the task now runs the holder's code; return the previous call, or None.

        While the current clock is stopped for a question to the user, the task counts as waiting.
        """
        before = self._running.get(task)
        self._running[task] = holder, Clock.current()
        self._wake(task)
        return before

    def end(self, task: asyncio.Task[object], before: _Call | None = None) -> None:
        """Attribute the task's work to the previous call again, or to no plugin."""
        if before is None:
            del self._running[task]
        else:
            self._running[task] = before

    def close(self) -> None:
        """Stop the detection of stalls, and end its thread."""
        self._closed.set()
        self._awake.set()
        if self._timer is not None:
            self._timer.cancel()

    def _wake(self, work: asyncio.Future[Any]) -> None:
        """Start the timer and the thread that detect stalls, when work begins or continues."""
        if self._timer is not None or self._closed.is_set():
            return
        loop = work.get_loop()
        self._loop_thread, self._loop_id = threading.get_ident(), threading.get_native_id()
        self._awake.set()
        self._turn(loop)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._watch, args=(loop,), name="pegboard-stalls", daemon=True
            )
            with suppress(RuntimeError):  # there is no thread to be had: nobody watches
                self._thread.start()

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._turned_at = time.monotonic()
        waits = {clock.resumption() for _, clock in self._running.values()}
        self._timer = loop.call_later(BEAT_S, self._turn, loop) if None in waits else None
        if self._timer is None:
            self._awake.clear()
            for each in filter(None, waits):
                each.remove_done_callback(self._wake)
                each.add_done_callback(self._wake)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        seen_at = told_at = hung_at = starved_s = 0.0
        while self._awake.wait():  # without a limit: nothing runs until then
            if self._closed.wait(BEAT_S):
                return
            turned_at, loop_thread = self._turned_at, self._loop_id
            if turned_at != seen_at:
                seen_at, starved_s = turned_at, starved(loop_thread)
            # On a machine with too much to do it is nobody's fault that the loop has to wait.
            held_s = time.monotonic() - turned_at - (starved(loop_thread) - starved_s)
            if not self._awake.is_set() or held_s < STALL_S or not (found := self._look(loop)):
                continue
            holder, text = found
            if turned_at != told_at:
                told_at = turned_at
                if holder is None:
                    log_stall("something %s", text)
                else:
                    with suppress(RuntimeError):  # the loop was closed meanwhile
                        loop.call_soon_threadsafe(self._report, holder, text)
            if turned_at != hung_at and held_s >= HANG_S:
                hung_at = turned_at
                who = f"{holder.what} of plugin {holder.plugin}" if holder else "something"
                log_stall("%s %s, and has not let go for %.0f s", who, text, held_s)

    def _look(self, loop: asyncio.AbstractEventLoop) -> tuple[Holder | None, str] | None:
        """Return the plugin part that blocks the loop, and a message with the code location.

        Return None if the loop is idle or only waits for the processor. The holder is None if the
        blocking code is in no known call but in a library or a separate task.
        """
        frames = _innermost(sys._current_frames().get(self._loop_thread))  # noqa: SLF001 - the documented way
        running = dict(self._running)
        if not frames or not running:
            return None
        place = ", called from ".join(frames)
        text = f"held up everything for more than {STALL_S:g} s"
        task = asyncio.current_task(loop)
        if task is not None and task in running:
            return running[task][0], f"{text} at {place}"
        names = dict.fromkeys(f"{each.what} of {each.plugin}" for each, _ in running.values())
        return None, f"{text} while there ran {', '.join(names)}, at {place}"


class _RunningCall:
    """A context manager around one call of a plugin; a generator would add eight calls per hook."""

    def __init__(self, stalls: Stalls, task: asyncio.Task[object], holder: Holder) -> None:
        self._stalls, self._task, self._holder = stalls, task, holder

    def __enter__(self) -> None:
        self._before = self._stalls.begin(self._task, self._holder)
        self._printing = PRINTING.set(self._holder.plugin)

    def __exit__(self, *_: object) -> None:
        PRINTING.reset(self._printing)
        self._stalls.end(self._task, self._before)


def log_stall(text: str, *facts: object) -> None:
    """Log a stall of the event loop that users do not see."""
    import logging  # 2 ms that only a program in trouble pays

    logging.getLogger("pegboard.plugins").warning(text, *facts)


def _innermost(frame: FrameType | None) -> list[str]:
    """Return the innermost code as `file:line (function)`; empty while the loop is idle.

    The plugin's callers are omitted because they are the same for each call.
    """
    if frame is None or frame.f_code.co_filename.endswith(_LOOP[1]):
        return []
    found: list[str] = []
    foreign = False
    while frame is not None and len(found) < FRAMES:
        code = frame.f_code
        if f"/{_LOOP[0]}/" in code.co_filename:
            break
        if code.co_filename.startswith(_CORE) and foreign:
            break
        foreign = foreign or not code.co_filename.startswith(_CORE)
        found.append(f"{code.co_filename}:{frame.f_lineno} ({code.co_name})")
        frame = frame.f_back
    return found
