"""The frames that a kind of model server sends, for tests of providers."""

import json
from collections.abc import Mapping
from typing import Literal, Protocol

End = Literal["stop", "tool-calls", "length", "content-filter"]
Refusal = Literal["auth", "overflow", "quota", "policy", "overloaded", "invalid"]
Framing = Literal["events", "lines"]
CONTENT_TYPES: Mapping[Framing, str] = {
    "events": "text/event-stream",
    "lines": "application/x-ndjson",
}
IDLE_FRAMES: Mapping[Framing, bytes] = {"events": b": ping\n\n", "lines": b"\n"}
"""The meaningless frame that a server sends to keep a connection open."""
BROKEN_FRAMES: Mapping[Framing, bytes] = {"events": b'data: {"broken\n\n', "lines": b'{"broken\n'}


def meant(arguments: str) -> object:
    """Return a call's arguments as parsed JSON, or as text if the arguments are not JSON."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


class ServerFrames(Protocol):
    """The frames that a kind of server sends, as bytes of an answer's body.

    If a format has no frames for a method, the method returns `b""`, and the faults that need these
    frames are left out.
    """

    def start(self) -> bytes:
        """Return the bytes before the first block of an answer."""
        ...

    def text(self, text: str) -> bytes:
        """Return a block of text."""
        ...

    def call(self, call_id: str, name: str, arguments: str, *, index: int = 0) -> bytes:
        """Return a complete call with JSON `arguments`; `index` is the index of its block."""
        ...

    def cut_call(self, call_id: str, name: str, arguments: str) -> bytes:
        """Return the beginning of a call that breaks off in the middle of the arguments."""
        ...

    def end(self, reason: End, *, usage: tuple[int, int] | None = (10, 5)) -> bytes:
        """Return the end of an answer; `usage` is the input and output tokens, if reported."""
        ...

    def error(self, refusal: Refusal, message: str) -> bytes:
        """Return the JSON body of an HTTP error."""
        ...

    def error_event(self, refusal: Refusal, message: str) -> bytes:
        """Return an error event, for the middle of a stream with status 200."""
        ...

    def stray(self) -> bytes:
        """Return an event of an unknown type."""
        ...
