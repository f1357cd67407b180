"""What waits for an answer in an App, and what came of its calls."""

import asyncio

from pegboard import App
from pegboard.schema.part import Completed, ToolPart
from pegboard.schema.session import PermissionRequest


async def asked(app: App, count: int = 1) -> list[PermissionRequest]:
    """The requests that wait, once there are so many."""
    async with app.subscribe(limit=100_000) as subscription, asyncio.timeout(30):
        events = aiter(subscription)
        while len(app.permissions.pending()) < count:
            await anext(events)
    return list(app.permissions.pending())


async def outcomes(app: App, session_id: str) -> list[str]:
    """What came of the calls: `done`, or why not."""
    states = [
        part.state
        for turn in await app.list_turns(session_id)
        for part in turn.parts
        if isinstance(part, ToolPart)
    ]
    return [
        state.output if isinstance(state, Completed) else getattr(state, "error", "")
        for state in states
    ]
