"""The body of an error response in any format: a sentence for users, and codes for programs."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from pegboard.http.wireformat import ErrorBody

EXCERPT_CHARS = 500
_HTML = r"\s*(<!doctype html|<html)"
_TITLE = r"(?s)<title[^>]*>(.*?)</title>"
_REPEATED = ("input", "messages", "request", "body")
"""Fields in which servers repeat what was sent to them."""
_SENTENCES = (
    *("error", "errors", "fault", "base_resp"),
    *("metadata", "raw"),  # OpenRouter: what the server behind it said
    *("message", "detail", "msg", "error_message", "error_msg", "status_msg", "faultstring"),
    *("error_description", "description", "reason", "title", "code", "type", "__type"),
)
"""The fields in which servers have the sentence, or an object or list with it; the first counts."""


def read_body(body: str, own: Callable[[Any], ErrorBody] | None = None) -> ErrorBody:
    """Read an error response: JSON, which `own` may read, an HTML page (by its title), or text."""
    if re.match(_HTML, body, re.IGNORECASE):
        title = re.search(_TITLE, body, re.IGNORECASE)
        page = f"an HTML page titled {title[1].strip()!r}" if title else "an HTML page"
        return ErrorBody(message=page)
    try:
        return _read(json.loads(body), own)
    except (ValueError, RecursionError):
        return ErrorBody(message=excerpt(body))


def _read(value: object, own: Callable[[Any], ErrorBody] | None) -> ErrorBody:
    """Return the error in decoded JSON: by the provider's `own` reader, else by its fields.

    A proxy before the server may answer in a format that the reader does not know.
    """
    found = ErrorBody()
    if own is not None:
        try:
            found = own(value)
        except (AttributeError, LookupError, TypeError, ValueError, msgspec.MsgspecError):
            found = ErrorBody()
    if not found.message:
        found = ErrorBody(message=_sentence(value), code=found.code, type=found.type)
    inner = value.get("error") if isinstance(value, dict) else None
    fields = inner if isinstance(inner, dict) else value
    return ErrorBody(
        message=excerpt(found.message),
        code=found.code or _word(fields, "code"),
        type=found.type or _word(fields, "type"),
    )


def texts_of(body: str, found: ErrorBody) -> str:
    """Return the strings in an error body and in `found`, what was read from it, one per line."""
    try:
        strings = [*_strings(json.loads(body))]
    except (ValueError, RecursionError):
        strings = [body]
    return "\n".join(dict.fromkeys((*strings, found.message, found.code, found.type)))


def excerpt(text: str) -> str:
    """Return a text on one line, cut to `EXCERPT_CHARS` for display."""
    text = " ".join(text.split())
    return text if len(text) <= EXCERPT_CHARS else f"{text[:EXCERPT_CHARS]}…"


def _sentence(value: object) -> str:
    if isinstance(value, list) and value:
        return _sentence(value[0])
    if not isinstance(value, dict):
        return value if isinstance(value, str) else ""
    fields = {str(name).lower(): each for name, each in value.items()}
    return next((found for key in _SENTENCES if (found := _sentence(fields.get(key)))), "")


def _word(value: object, name: str) -> str:
    found = value.get(name) if isinstance(value, Mapping) else None
    is_word = isinstance(found, str | int) and not isinstance(found, bool)
    return str(found) if is_word else ""


def _strings(value: object) -> Iterator[str]:
    match value:
        case dict():
            for name, each in value.items():
                if name not in _REPEATED:
                    yield from _strings(each)
        case list():
            for each in value:
                yield from _strings(each)
        case str():
            yield value
