"""The frames that a kind of server writes, for the tests of whoever speaks with it."""

from typing import Literal, Protocol

End = Literal["stop", "tool-calls", "length", "content-filter"]
Refusal = Literal["auth", "overflow", "quota", "policy", "overloaded", "invalid"]


class ServerFrames(Protocol):
    """How a kind of server writes what it says, as bytes of the body.

    A method that a format has no frames for gives `b""`; the faults that need them are left out.
    """

    def start(self) -> bytes:
        """What stands before the first block of an answer."""
        ...

    def text(self, text: str) -> bytes:
        """A block of text."""
        ...

    def call(self, call_id: str, name: str, arguments: str, *, index: int = 0) -> bytes:
        """A whole call; `arguments` are JSON, `index` is its place among the blocks."""
        ...

    def cut_call(self, call_id: str, name: str, arguments: str) -> bytes:
        """The beginning of a call, with the beginning of its arguments."""
        ...

    def end(self, reason: End, *, usage: tuple[int, int] | None = (10, 5)) -> bytes:
        """The end of an answer, with what it has cost: tokens read and written."""
        ...

    def error(self, refusal: Refusal, message: str) -> bytes:
        """The JSON body of an HTTP error."""
        ...

    def error_event(self, refusal: Refusal, message: str) -> bytes:
        """An error in the middle of a stream that began with 200."""
        ...

    def stray(self) -> bytes:
        """An event of a kind that does not exist."""
        ...
