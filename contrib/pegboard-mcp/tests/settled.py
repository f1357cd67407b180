"""Waiting for a condition, with a limit."""

import asyncio
from collections.abc import Callable

LIMIT_S = 60.0


async def settled(condition: Callable[[], object], *, limit_s: float = LIMIT_S) -> None:
    """Return once the condition holds."""
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 - any condition
            await asyncio.sleep(0.02)
