"""The event streams: `/event` for one directory, `/global/event` for all directories."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pegboard_plugins.server.coding import compress, takes_gzip
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.feed import EventFeed, EventFrame
from pegboard_plugins.server.fleet import EVENTS_PATH, known_events
from pegboard_plugins.server.serverstate import Followed, Served, ServerState
from pegboard_plugins.shared.frontend import for_client

HEARTBEAT_S = 10.0
_HEADERS = {
    "cache-control": "no-cache, no-transform",
    "vary": "accept-encoding",
    "x-accel-buffering": "no",
}
routes = APIRouter()

LastId = Annotated[str | None, Header(alias="last-event-id")]
WithIds = Annotated[bool, Query(description="Number the frames, so that a client can resume")]
Wrap = Callable[[EventFrame], bytes]


@routes.get("/event", **operation("event.subscribe", stream=True))
async def directory_events(
    app: Followed, state: Served, last_event_id: LastId = None, *, ids: WithIds = False
) -> Response:
    """Stream the events of the request's directory.

    The oldest clients use this route without ids. They also get the text of an answer as whole
    parts.
    """
    numbered = ids or last_event_id is not None
    stream = _Stream(state.feed, _bare, ids=numbered, repeats=not numbered)
    return _EventStream(partial(stream.frames, app.workspace.directory, last_event_id))


@routes.get("/global/event", **operation("global.event", stream=True))
async def all_events(
    state: Served, last_event_id: LastId = None, *, ids: WithIds = False
) -> Response:
    """Stream the events of all directories, each in a JSON object with its directory."""
    stream = _Stream(state.feed, EventFrame.envelope, ids=ids or last_event_id is not None)
    return _EventStream(partial(stream.frames, None, last_event_id))


@routes.get(EVENTS_PATH, **operation("pegboard.fleet.event", stream=True))
async def own_events(state: Served, last_event_id: LastId = None) -> Response:
    """Stream the events of this server's own Apps to another server of its fleet.

    The stream begins with the running sessions and waiting requests. Its frames are numbered; the
    id `0` is before all of them.
    """
    after = state.feed.frame_id(0) if last_event_id == "0" else last_event_id
    stream = _Stream(state.feed, _for_server, ids=True, repeats=True, own=True)
    return _EventStream(partial(_with_known, state, stream, after))


async def _with_known(
    state: ServerState, stream: "_Stream", after: str | None, *, coded: bool
) -> AsyncGenerator[bytes, None]:
    frames = stream.frames(None, after, coded=coded)
    async with aclosing(frames):
        yield await anext(frames)
        yield b"".join(
            b"data: %b\n\n" % _for_server(EventFrame(0, place, project, event))
            for place, project, event in known_events(state.pool)
        )
        async for lines in frames:
            yield lines


def _for_server(frame: EventFrame) -> bytes:
    """Encode an event for another server; `known` marks an event that repeats a present state."""
    marks = (
        b',"repeats":true' if frame.repeats else b"",
        b"" if frame.number else b',"known":true',
    )
    return frame.envelope()[:-1] + b"".join(marks) + b"}"


class _EventStream(StreamingResponse):
    """An HTTP response with an event stream, which ends when the client disconnects."""

    def __init__(self, frames: Callable[..., AsyncGenerator[bytes, None]]) -> None:
        super().__init__((), headers=_HEADERS, media_type="text/event-stream")
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Headers(scope=scope)
        coded = takes_gzip(asked.getlist("accept-encoding"))
        frames = self._frames(coded=coded)
        shown = (for_client(lines, asked) async for lines in frames)
        self.body_iterator = shown
        if coded:
            self.headers["content-encoding"] = "gzip"
            self.body_iterator = compress(shown)
        async with aclosing(frames):
            await super().__call__(scope, receive, send)


class _Stream:
    """The frames of one client's event stream, with `id:` lines if the client asks for ids."""

    def __init__(
        self, feed: EventFeed, wrap: Wrap, *, ids: bool, repeats: bool = False, own: bool = False
    ) -> None:
        self._feed = feed
        self._wrap = wrap
        self._ids = ids
        self._repeats = repeats
        self._own_frames = own

    async def frames(
        self, directory: Path | None, after: str | None, *, coded: bool
    ) -> AsyncGenerator[bytes, None]:
        """Yield encoded frames until the client leaves or the server closes the stream."""
        listener = self._feed.listen(
            directory, after=after, repeats=self._repeats, coded=coded, own=self._own_frames
        )
        try:
            # With the number a client can come back that has heard nothing else; one that does
            # come back has not heard what is kept for it.
            yield self._own("server.connected", {}, listener.heard if after is None else None)
            while True:
                frames = await listener.frames(HEARTBEAT_S)
                if listener.missed:
                    missed, listener.missed = listener.missed, 0
                    yield self._own("server.resync", {"missed": missed})
                if frames:
                    yield b"".join(self._line(frame, frame.number) for frame in frames)
                elif listener.closed:
                    return
                else:
                    yield self._own("server.heartbeat", {}, listener.heard)
        finally:
            self._feed.forget(listener)

    def _own(self, kind: str, properties: dict[str, object], number: int | None = None) -> bytes:
        return self._line(EventFrame(0, None, None, self._feed.own(kind, properties)), number)

    def _line(self, frame: EventFrame, number: int | None) -> bytes:
        line = b"data: %b\n\n" % self._wrap(frame)
        if number is None or not self._ids:
            return line
        return b"id: %b\n%b" % (self._feed.frame_id(number).encode(), line)


def _bare(frame: EventFrame) -> bytes:
    return frame.event
