"""The common parts of the wire formats: JSON, option names, and notes for unsupported media."""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from math import isfinite
from typing import Any

import msgspec

from pegboard.providers import Media
from pegboard.schema.model import Model

_MEDIA = ("image", "audio", "pdf", "video")
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_FIRST_HALF = re.compile(rb'(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})"')
_SECOND_HALF = re.compile(rb'"(\\u[dD][c-fC-F][0-9a-fA-F]{2})')
_TOO_DEEP = "it is nested too deep"
encode_json = msgspec.json.Encoder().encode
"""JSON without a byte that is not needed."""


def snake_case(name: str) -> str:
    """Convert the name of an option to snake case, as in servers' APIs: `reasoning_effort`."""
    return _CAPITAL.sub(r"_\1", name).lower()


def decode_json(frame: bytes) -> Any:  # noqa: ANN401 - JSON from outside
    """Parse the JSON of a frame; invalid Unicode becomes replacement characters.

    :raises ValueError: when the frame is not JSON.
    """
    try:
        return msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(forgiven(frame))
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def forgiven(frame: bytes) -> str:
    """Rewrite a frame of invalid JSON as valid JSON; this is slow.

    The frame may have invalid UTF-8, lone surrogates, NaN and infinite numbers.

    :raises ValueError: when it is not JSON even so.
    """
    text = frame.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_int=_number, parse_float=_number, parse_constant=str)
        whole = json.dumps(value, ensure_ascii=False)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class SurrogatePairs:
    """The repair of characters whose surrogate pair a server has split between two frames.

    A frame with a string that ends in a high surrogate is held back. If the next frame has a string
    that starts with a low surrogate, the whole character is moved there.
    """

    def __init__(self) -> None:
        self._waiting = b""

    def join(self, frame: bytes) -> Iterator[bytes]:
        """Yield the frames that are complete, in order."""
        waiting, self._waiting = self._waiting, b""
        if waiting:
            first, second = _FIRST_HALF.search(waiting), _SECOND_HALF.search(frame)
            if first and second:
                waiting = waiting[: first.start(1)] + waiting[first.end(1) :]
                frame = frame[: second.start(1)] + first[1] + frame[second.start(1) :]
            yield waiting
        if b"\\u" in frame and _FIRST_HALF.search(frame):
            self._waiting = frame
        else:
            yield frame

    def rest(self) -> Iterator[bytes]:
        """Yield the frame that is held back, once it is known that no other frame follows."""
        if self._waiting:
            yield self._waiting
            self._waiting = b""


def _number(text: str) -> float | str:
    """Parse a number in JSON; return the number's text if it is too large."""
    number = float(text)
    if not isfinite(number):
        return text
    return int(text) if text.lstrip("-").isdecimal() else number


def mapping_in(value: object) -> Mapping[str, Any]:
    """Return the value if the value is a JSON object, else an empty object."""
    return value if isinstance(value, dict) else {}


def count_in(counts: Mapping[str, Any], name: str) -> int:
    """Return the token count `name` if its value is plausible, else 0."""
    value = counts.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value < 1 << 40 else 0


def valid_id(given: str, pattern: re.Pattern[str], length: int) -> str:
    """Return `given`, the id of a call, or a stable substitute if the provider would refuse it."""
    return (
        given if pattern.fullmatch(given) else hashlib.sha256(given.encode()).hexdigest()[:length]
    )


def media_kind(media: Media) -> str:
    """Return image, pdf, audio or video, or the main type of any other MIME type."""
    return "pdf" if media.mime == "application/pdf" else media.mime.partition("/")[0]


def media_bytes(media: Media) -> str:
    """Return the base64 of a `data:` URL, or "" for another URL."""
    head, _, data = media.url.partition(";base64,")
    return data if head.startswith("data:") else ""


def media_inputs(model: Model) -> frozenset[str]:
    """Return the kinds of media that a model reads."""
    return frozenset(kind for kind in _MEDIA if getattr(model.capabilities.input, kind))


def note_instead(media: Media, kinds: Collection[str], mimes: Collection[str] = ()) -> str:
    """Return the note that replaces media that the model cannot read, or "" for readable media.

    `kinds` are the kinds of media that the model reads. `mimes` are the MIME types that its
    provider accepts; () accepts all.
    """
    kind = media_kind(media)
    if kind not in kinds:
        return left_out(media, f"this model does not read {kind} input")
    if media.url.startswith("data:") and not media_bytes(media):
        return left_out(media, "it is empty or damaged")
    if mimes and media.mime not in mimes:
        return left_out(media, f"this provider takes no {media.mime}")
    return ""


def left_out(media: Media, reason: str) -> str:
    """Return the note that replaces media that are not sent."""
    name = f'"{media.filename}"' if media.filename else f"a file of type {media.mime}"
    return f"ERROR: {name} was left out, because {reason}. Tell the user."
