"""The tool calls of an answer, assembled from chunks that may share an index or an id."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import msgspec

from pegboard.providers import StreamEvent, ToolCall, ToolInputDelta, ToolInputEnd, ToolInputStart


@dataclass(slots=True, kw_only=True)
class _OpenCall:
    """A tool call that is being streamed; `given` is the server's id for it, `id` the unique id.

    `again` means that a chunk has named another call at the same index, whose arguments follow.
    """

    id: str
    given: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    again: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(msgspec.json.decode(self.text), dict)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return False


def unique_id(given: str, taken: Collection[str]) -> str:
    """Return `given`, the server's id of a call, or a new id if it is empty or in `taken`."""
    if given and given not in taken:
        return given
    number = len(taken)
    while f"call_{number}" in taken:
        number += 1
    return f"call_{number}"


class AnswerCalls:
    """The tool calls of one answer, in the order in which the calls first appeared.

    Chunks belong to the call at their index. Some servers number every call 0 or give all calls the
    same id. There, a name that follows complete arguments starts another call. A call with no id,
    or with the id of another call, gets a new id.
    """

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._at: dict[int | None, _OpenCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, index: int | None, given: str, name: str, text: str) -> Iterator[StreamEvent]:
        """Add a chunk of a call, and yield the events for this chunk.

        `index` is the call's number in the answer, None if the server gives none. `given` is the
        server's id of the call. `text` is a chunk of its arguments as JSON. Each string may be
        empty.
        """
        call = self._at.get(index) or self._of_stray(given, name)
        if call is None or self._is_another(call, given, name, text):
            name = name or (call.name if call else "")
            own = unique_id(given, {each.id for each in self._calls})
            call = _OpenCall(id=own, given=given)
            self._calls.append(call)
        self._at[index] = call
        if name and not call.name:
            call.name = name
            yield ToolInputStart(call.id, name)
            if call.pieces:
                yield ToolInputDelta(call.id, call.text)
        if text:
            call.pieces.append(text)
            if call.name:
                yield ToolInputDelta(call.id, text)

    def end(self) -> Iterator[StreamEvent]:
        """Yield the last events of all calls; only for an answer that was not cut off."""
        for call in self._calls:
            if not call.name:
                yield ToolInputStart(call.id, "")
            yield ToolInputEnd(call.id)
            yield ToolCall(call.id, call.name, call.text or "{}")

    def _of_stray(self, given: str, name: str) -> _OpenCall | None:
        """Return the call that a chunk at an unknown index continues.

        Return None if the chunk starts a new call or cannot be assigned.
        """
        if name or not self._calls:
            return None
        last = self._calls[-1]
        same = next((call for call in self._calls if given and call.given == given), None)
        return same or (None if given or last.is_whole else last)

    def _is_another(self, call: _OpenCall, given: str, name: str, text: str) -> bool:
        """Return whether a chunk at the index of this call starts a new call.

        Some servers repeat id and name with every chunk; others send the name after the arguments.
        """
        if call.again and text:
            return True
        if not name or not call.name:
            return False
        if given and given != call.given:
            return True
        if text and name == call.name and not text.lstrip().startswith("{"):
            return False
        if not call.is_whole:
            return not (given or call.pieces) and name != call.name
        call.again = not text
        return bool(text) or name != call.name
