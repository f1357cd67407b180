"""The conversion of a model's output, plain text or a JSON object, into events."""

import json
import re
import secrets
from collections.abc import Iterator

from pegboard.providers import (
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from pegboard_local.dialogue import ANSWER, INPUT, TOOL

_TEXT_HEAD = re.compile(rf'\s*\{{\s*"{ANSWER}"\s*:\s*"')
_CALL_HEAD = re.compile(rf'\s*\{{\s*"{TOOL}"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"{INPUT}"\s*:\s*')
_INSIDE = re.compile(
    r'(?:[^"\\]|\\(?:[^u]|u(?![dD][89abAB])[0-9a-fA-F]{4}|u[0-9a-fA-F]{4}\\u[0-9a-fA-F]{4}))*'
)
"""A JSON text as far as all of its escapes have arrived."""
_OUTER = re.compile(r"[\s}]*$")
"""What may belong to the object around a call's arguments."""
_BLOCK = "0"


class LocalAnswer:
    """A parser for the streamed output of a local model.

    `is_json` says whether the output is a JSON object by the schema of `dialogue.schema_of`.
    """

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._written = ""
        self._place = 0
        """The beginning of the text that was not yet sent."""
        self._sent = 0
        """The length of a call's arguments that was already sent."""
        self._talks = False
        self._call: tuple[str, str] | None = None
        self.called = False

    def read(self, piece: str) -> Iterator[StreamEvent]:
        """Yield the events for the next chunk of output."""
        self._written += piece
        if not self._is_json:
            yield from self._write(self._written[self._place :])
            self._place = len(self._written)
            return
        if self._call is None and not self._talks:
            yield from self._begun()
        if self._call is not None:
            sure = _OUTER.sub("", self._rest())
            if delta := sure[self._sent :]:
                yield ToolInputDelta(self._call[0], delta)
                self._sent = len(sure)
        elif self._talks:
            found = _INSIDE.match(self._written, self._place)
            assert found is not None  # it matches the empty text
            self._place = found.end()
            yield from self._write(json.loads(f'"{found[0]}"', strict=False))

    def end(self, *, whole: bool) -> Iterator[StreamEvent]:
        """Yield the last events of the answer; `whole` says that the model finished the answer."""
        if self._talks:
            yield TextEnd(_BLOCK)
        if self._call is not None:
            call_id, name = self._call
            written = self._input() if whole else None
            if written is not None and (rest := written[self._sent :]):
                yield ToolInputDelta(call_id, rest)
            yield ToolInputEnd(call_id)
            if written is not None:
                yield ToolCall(call_id, name, written)
                self.called = True

    def _begun(self) -> Iterator[StreamEvent]:
        """Yield the start event of a text or tool call, once the first characters show which."""
        if found := _TEXT_HEAD.match(self._written):
            self._talks = True
            self._place = found.end()
            yield TextStart(_BLOCK)
        elif found := _CALL_HEAD.match(self._written):
            self._call = (f"call_{secrets.token_hex(8)}", json.loads(found[1]))
            self._place = found.end()
            yield ToolInputStart(*self._call)

    def _write(self, text: str) -> Iterator[StreamEvent]:
        if text and not self._talks:
            self._talks = True
            yield TextStart(_BLOCK)
        if text:
            yield TextDelta(_BLOCK, text)

    def _rest(self) -> str:
        return self._written[self._place :].lstrip()

    def _input(self) -> str | None:
        """Return the tool call's arguments as JSON text, or None while they are incomplete."""
        written = self._rest()
        try:
            _, end = json.JSONDecoder(strict=False).raw_decode(written)
        except ValueError:
            return None
        return written[:end]
