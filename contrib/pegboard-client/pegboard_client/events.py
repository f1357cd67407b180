"""The decoding of an event stream: bytes to frames, and frames to events."""

from collections.abc import Iterator

import msgspec

from pegboard.errors import ServerError
from pegboard.schema.event import (
    TYPES,
    Custom,
    Event,
    PermissionAsked,
    ProjectUpdated,
    Properties,
    QuestionAsked,
)
from pegboard.schema.session import PermissionRequest, Project, QuestionRequest
from pegboard_plugins.shared.frontend import decoded

LONGEST_FRAME_BYTES = 128 << 20
"""More than any message has; a stream without an end of its first line is none."""
_SIGNS_OF_LIFE = frozenset({"server.connected", "server.heartbeat"})
_RESYNC = "server.resync"
_KINDS = {name: kind for kind, name in TYPES.items()}
_STORED_DIGITS = 26


class Resync(msgspec.Struct, frozen=True, kw_only=True):
    """A notice that events were lost, `missed` of them (0 if unknown); read all state again."""

    missed: int = 0


class GlobalEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event with the directory and project that it belongs to; None for the whole server."""

    event: Event
    directory: str | None = None
    project: str | None = None


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a server-sent event stream; `id` is where to resume the stream, or None."""

    id: str | None
    data: bytes


class FrameReader:
    """A decoder that splits bytes into frames (WHATWG HTML, 9.2: fields `data` and `id`)."""

    def __init__(self) -> None:
        self._rest = b""
        self._id: str | None = None
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Add bytes, and yield the frames that are now complete.

        :raises ServerError: when a line has no end.
        """
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LONGEST_FRAME_BYTES:
            raise ServerError("the event stream has a line without an end", name="UnexpectedAnswer")
        for line in lines:
            yield from self._line(line.removesuffix(b"\r"))

    def _line(self, line: bytes) -> Iterator[Frame]:
        if not line:
            if self._data:
                yield Frame(id=self._id, data=b"\n".join(self._data))
            self._id, self._data = None, []
            return
        field, _, value = line.partition(b":")
        match field:
            case b"data":
                self._data.append(value.removeprefix(b" "))
            case b"id":
                self._id = value.removeprefix(b" ").decode(errors="replace")


class _Bare(msgspec.Struct, frozen=True):
    type: str
    properties: msgspec.Raw = msgspec.Raw(b"{}")
    id: str = ""


class _Envelope(msgspec.Struct, frozen=True):
    payload: _Bare
    directory: str | None = None
    project: str | None = None


def event_of(data: bytes) -> Event | Resync | None:
    """Decode a frame of `/event`; None for a keep-alive frame."""
    try:
        return _event(msgspec.json.decode(data, type=_Bare))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _nonsense(error) from error


def global_event_of(data: bytes) -> GlobalEvent | Resync | None:
    """Decode a frame of `/global/event`; None for a keep-alive frame."""
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        found = _event(envelope.payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _nonsense(error) from error
    if not isinstance(found, Event):
        return found
    return GlobalEvent(event=found, directory=envelope.directory, project=envelope.project)


def _event(bare: _Bare) -> Event | Resync | None:
    if bare.type in _SIGNS_OF_LIFE:
        return None
    if bare.type == _RESYNC:
        return msgspec.json.decode(bare.properties, type=Resync)
    return Event(properties=_properties(bare), seq=_number(bare.id))


def _properties(bare: _Bare) -> Properties:
    """Decode the properties by the event's type; an unknown type becomes `Custom`."""
    try:
        match _KINDS.get(bare.type):
            case None:
                pass
            case kind if kind is PermissionAsked:
                asked = msgspec.json.decode(bare.properties, type=PermissionRequest)
                return PermissionAsked(request=asked)
            case kind if kind is QuestionAsked:
                question = msgspec.json.decode(bare.properties, type=QuestionRequest)
                return QuestionAsked(request=question)
            case kind if kind is ProjectUpdated:
                project = msgspec.json.decode(bare.properties, type=Project)
                return ProjectUpdated(info=project)
            case kind:
                known: Properties = decoded(bare.properties, kind)
                return known
    except msgspec.ValidationError:
        pass
    return Custom(name=bare.type, data=msgspec.json.decode(bare.properties, type=dict))


def _number(event_id: str) -> int:
    """Return the sequence number in the id of a stored event, or 0 for an unstored event."""
    digits = event_id.removeprefix("evt_")
    is_number = len(digits) == _STORED_DIGITS and digits.isascii() and digits.isdecimal()
    return int(digits) if is_number else 0


def _nonsense(error: Exception) -> ServerError:
    return ServerError(f"not an event: {error}", name="UnexpectedAnswer")
