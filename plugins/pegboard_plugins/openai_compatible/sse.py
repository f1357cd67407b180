"""Server-sent events: bytes in any pieces to the data of each event (WHATWG HTML, 9.2)."""

LINE_LIMIT_BYTES = 16 << 20
_BOM = b"\xef\xbb\xbf"


class LineTooLongError(ValueError):
    """An event is longer than 16 MB."""


class EventParser:
    """The `data` of the events of one stream, in order; comments and other fields are left out.

    `feed` takes the bytes as they come, `rest` gives the event that the stream's end has
    completed: servers tend to leave out the last blank line.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._first = True
        self._pending_cr = b""

    def feed(self, content: bytes) -> list[bytes]:
        """The events that are complete.

        :raises LineTooLongError: when one takes more than 16 MB.
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
        """The last event, if the stream ended without a blank line."""
        block = bytes(self._buffer)
        self._buffer.clear()
        return self._data([block])

    def _unix_lines(self, content: bytes) -> bytes:
        """Line ends as LF; a CR at the end waits, because an LF may belong to it."""
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


def _lines(block: bytes) -> bytes:
    """The data of an event that has more than one line, or an unusual one."""
    values = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            values.append(value.removeprefix(b" "))
    return b"\n".join(values)
