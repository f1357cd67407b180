"""Work that goes on to its end, however often who waits for it is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_Value = TypeVar("_Value")


async def shielded(work: Coroutine[Any, Any, _Value]) -> _Value:
    """What `work` returns; a cancellation of the caller is raised once the work has ended.

    The work needs a time limit of its own: nothing else ends it. Where both happen, the failure
    of the work is the cause of the cancellation.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()
