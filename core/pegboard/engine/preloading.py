"""The import of modules for the first tool calls while the model answers."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TypeVar

from pegboard.contract.tools import Tool
from pegboard.kit.threads import run_in_thread

HEAD_START_S = 0.05
"""How long the request has the machine for itself; a step that is over by then loads nothing."""
_EACH_CALL = ("pegboard.engine.toolcontext", "pegboard.engine.compaction.trigger")
"""What the first call of any tool imports, and the step behind it."""

_T = TypeVar("_T")
_Opening = Callable[[], object]


async def load_beside(
    work: Coroutine[object, object, _T], tools: Sequence[Tool], opening: Sequence[_Opening]
) -> _T:
    """Await `work` while a thread imports the modules of the first calls of these tools.

    `opening` are functions that import the modules needed to start a process and to open a file.
    The thread may outlive the work; a call waits only for its own modules.
    """
    is_cold = bool(tools) and (_EACH_CALL[0] not in sys.modules or bool(_cold(tools)))
    task = asyncio.create_task(_load(tools, opening), name="loading") if is_cold else None
    try:
        return await work
    finally:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _load(tools: Sequence[Tool], opening: Sequence[_Opening]) -> None:
    await asyncio.sleep(HEAD_START_S)
    await run_in_thread(partial(_warm, _cold(tools), opening), name="pegboard-loading")


def _cold(tools: Sequence[Tool]) -> list[Tool]:
    """Return the tools with modules that are not imported yet."""
    return [tool for tool in tools if any(name not in sys.modules for name in tool.call_imports)]


def _warm(tools: Sequence[Tool], opening: Sequence[_Opening]) -> None:
    for name in _EACH_CALL:
        import_module(name)
    for each in opening:
        with suppress(Exception):  # foreign code; its first use says what is wrong
            each()
    for tool in tools:
        with suppress(Exception, SystemExit):  # foreign code; the call itself says what is wrong
            for name in tool.call_imports:
                import_module(name)
            tool.warm()
