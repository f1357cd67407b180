"""An answer's body, split into events or lines and decompressed, with a limit on silence.

Server-sent events follow WHATWG HTML, 9.2. Lines of JSON follow
https://github.com/ndjson/ndjson-spec and RFC 7464, without its record separators.
"""

import asyncio
import json
import zlib
from collections.abc import Callable
from typing import Literal

from pegboard.http.connection import BrokenAnswerError, Connection

LINE_LIMIT_BYTES = 16 << 20
BODY_LIMIT_BYTES = 256 << 20
"""No answer of a model is longer."""
PIECE_LIMIT_BYTES = 16 << 20
PIECE_RATIO = 200
"""What a piece may decompress to; more has been made to fill the memory, not to be read."""
HEAD_BYTES = 2_000
WHOLE_ANSWER_BYTES = 16 << 20
DONE = b"[DONE]"
"""The data of the last event."""
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_BOM = b"\xef\xbb\xbf"
_AROUND = b" \t\r\x1e"
"""Bytes around a value that do not belong to it, such as a CR, or the mark of a sequence."""
Shape = Literal["events", "lines", "whole"]
"""How a body is parted."""


class UnknownEncodingError(BrokenAnswerError):
    """A response body that is compressed in a way that the request did not allow."""


class LineTooLongError(ValueError):
    """An event or a line of a response that is longer than 16 MB."""


class LineParser:
    """The splitter of a stream into lines, in order and without empty lines."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._first = True

    def feed(self, content: bytes) -> list[bytes]:
        """Add received bytes and return the lines that are now complete.

        :raises LineTooLongError: when a line is longer than 16 MB.
        """
        seen = len(self._buffer)
        self._buffer += content
        end = self._buffer.rfind(b"\n", seen)
        if end < 0:
            if len(self._buffer) > LINE_LIMIT_BYTES:
                raise LineTooLongError
            return []
        lines = bytes(self._buffer[:end]).split(b"\n")
        del self._buffer[: end + 1]
        return self._values(lines)

    def rest(self) -> list[bytes]:
        """Return the last line if the stream ended without a line break."""
        line = bytes(self._buffer)
        self._buffer.clear()
        return self._values([line])

    def _values(self, lines: list[bytes]) -> list[bytes]:
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(_BOM)
        if any(len(line) > LINE_LIMIT_BYTES for line in lines):
            raise LineTooLongError
        return [value for line in lines if (value := line.strip(_AROUND))]


class EventParser:
    """The parser of a response stream into the `data` of its events; it ignores other fields.

    `feed` takes the received bytes. `rest` returns the event at the end of the stream, because many
    servers omit the last blank line.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._first = True
        self._pending_cr = b""

    def feed(self, content: bytes) -> list[bytes]:
        """Add received bytes and return the data of the events that are now complete.

        :raises LineTooLongError: when an event is longer than 16 MB.
        """
        content = self._unix_lines(content)
        seen = len(self._buffer)
        self._buffer += content
        end = self._buffer.rfind(b"\n\n", max(0, seen - 1))
        if end < 0:
            if len(self._buffer) > LINE_LIMIT_BYTES:
                raise LineTooLongError
            return []
        blocks = bytes(self._buffer[:end]).split(b"\n\n")
        del self._buffer[: end + 2]
        return self._data(blocks)

    def rest(self) -> list[bytes]:
        """Return the last event if the stream ended without a blank line."""
        block = bytes(self._buffer)
        self._buffer.clear()
        return self._data([block])

    def _unix_lines(self, content: bytes) -> bytes:
        """Convert line ends to LF; hold back a CR at the end, because an LF may follow."""
        content = self._pending_cr + content
        self._pending_cr = b""
        if b"\r" not in content:
            return content
        if content.endswith(b"\r"):
            content, self._pending_cr = content[:-1], b"\r"
        return content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _data(self, blocks: list[bytes]) -> list[bytes]:
        if self._first and blocks:
            self._first = False
            blocks[0] = blocks[0].removeprefix(_BOM)
        found = []
        for block in blocks:
            if len(block) > LINE_LIMIT_BYTES:
                raise LineTooLongError
            data = block[6:] if block[:6] == b"data: " and b"\n" not in block else _lines(block)
            if data:
                found.append(data)
        return found


class EventStream:
    """The body of a response, split into the data of events or into lines, or kept whole.

    `complete` is whether the server has sent its end marker, or the whole body has arrived. `head`
    is the start of the body.
    """

    def __init__(self, connection: Connection, shape: Shape = "events") -> None:
        self.complete = False
        self.is_whole = shape == "whole"
        self._connection = connection
        self._parser = LineParser() if shape == "lines" else EventParser()
        self._decode = _decoder(connection.headers.get("content-encoding", "").lower())
        self._ended = False
        self._taken = 0
        self.head = b""

    async def read(self, limit_s: float, *, left_s: float | None = None) -> list[bytes]:
        """Wait for events and return at least one event; return [] at the end of the response.

        Only events count as progress within `limit_s`. Comments and empty lines also count for the
        first `left_s` seconds, if given.

        :raises TimeoutError: when no event came in time.
        :raises OSError: when the connection breaks, or the bytes cannot be decoded.
        """
        if self.complete:
            return []
        if self.is_whole:
            self.complete = True
            return [await self.body(WHOLE_ANSWER_BYTES, limit_s)]
        events = await self._events(limit_s, left_s)
        if DONE in events:
            self.complete = True
            del events[events.index(DONE) :]
        return events

    async def body(self, limit_bytes: int, limit_s: float) -> bytes:
        """Return the rest of the response body, up to a limit of bytes.

        :raises OSError: like `read`.
        """
        pieces: list[bytes] = []
        async with asyncio.timeout(limit_s):
            while content := await self._content():
                pieces.append(content)
                if sum(map(len, pieces)) >= limit_bytes:
                    break
        return b"".join(pieces)[:limit_bytes]

    async def _events(self, limit_s: float, left_s: float | None) -> list[bytes]:
        loop = asyncio.get_running_loop()
        latest = loop.time() + (limit_s if left_s is None else left_s)
        async with asyncio.timeout_at(min(latest, loop.time() + limit_s)) as limit:
            while not self._ended:
                content = await self._content()
                limit.reschedule(min(latest, loop.time() + limit_s))
                try:
                    events = self._parser.feed(content) if content else self._parser.rest()
                except LineTooLongError as error:
                    raise BrokenAnswerError("an event of the answer is over 16 MB") from error
                self._ended = not content
                if events:
                    return events
        return []

    async def _content(self) -> bytes:
        """Return the next bytes, decompressed, or b"" at the end."""
        while True:
            content = await self._connection.read()
            if not content:
                return b""
            decoded = self._decode(content)
            self._taken += len(decoded)
            if self._taken > BODY_LIMIT_BYTES:
                raise BrokenAnswerError("the answer is over 256 MB")
            if decoded:
                self.head += decoded[: HEAD_BYTES - len(self.head)]
                return decoded


def _decoder(encoding: str) -> Callable[[bytes], bytes]:
    if encoding in ("", "identity"):
        return _as_it_is
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise UnknownEncodingError(
            f"the answer is compressed with {encoding}, which was not asked for"
        )
    decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)

    def decode(content: bytes) -> bytes:
        try:
            limit = max(PIECE_LIMIT_BYTES, PIECE_RATIO * len(content))
            decoded = decompressor.decompress(content, limit)
        except zlib.error as error:
            raise BrokenAnswerError(f"the answer is not {encoding}, as it claims") from error
        if decompressor.unconsumed_tail:
            raise BrokenAnswerError(f"the answer is a {encoding} bomb")
        return decoded

    return decode


def _as_it_is(content: bytes) -> bytes:
    return content


def _lines(block: bytes) -> bytes:
    """Return the joined data lines of an event in a response stream.

    The data of an event named `error` become the value of a field `error`, unless they have one.
    """
    values, name = [], b""
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            values.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.strip()
    data = b"\n".join(values)
    if name != b"error" or b'"error"' in data or not data:
        return data
    try:
        error = json.loads(data)
    except (ValueError, RecursionError):
        error = data.decode("utf-8", "replace")
    return json.dumps({"type": "error", "error": error}).encode()
