"""A route of the server: `GET /plugin/activity/turns` counts the answered turns of each session.

The plugin is an object, because the route and the listener share the count. A distribution names
it in its entry point; the name on the left is the one in the path:

    [project.entry-points.pegboard]
    activity = "route:plugin"
"""

from collections import Counter
from collections.abc import Sequence

from pegboard import hookimpl
from pegboard.schema.event import Event, SessionIdle


class Activity:
    """Counts from the start of the server on; the route has the server's own authentication."""

    def __init__(self) -> None:
        self._turns: Counter[str] = Counter()

    @hookimpl
    async def event(self, event: Event) -> None:
        """Count a session that has become idle."""
        if isinstance(event.properties, SessionIdle):
            self._turns[event.properties.session_id] += 1

    @hookimpl(optionalhook=True)
    def register_routes(self) -> Sequence[object]:
        """Return one router of FastAPI, which is imported only where there is a server."""
        from fastapi import APIRouter

        router = APIRouter()

        @router.get("/turns")
        async def turns() -> dict[str, int]:
            return dict(self._turns)

        return (router,)


plugin = Activity()
