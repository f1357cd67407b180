"""Results of tools are sanitised: encodable text, metadata and files within bounds."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.contract.results import DISPLAY, Attachment, Block, ToolResult
from pegboard.engine.content.attachments import MEDIA_LIMIT_BYTES
from pegboard.engine.content.truncate import limit_output
from pegboard.errors import ToolError
from pegboard.schema.wire import encode, to_json

TITLE_LETTERS = 500
FACTS_BYTES = 4 << 20
"""The longest metadata: each change of a call sends them to all who watch."""
_ROOM_AROUND = 100
"""Levels kept free of what an encoder can nest: metadata are stored within their part."""
LEFT_OUT = "leftOut"
"""The key under which metadata name what was left out of them."""


async def clean_result(result: ToolResult, *, output_dir: Path, hint: str) -> ToolResult:
    """The result in a form that can be stored and sent; a note says what was left out.

    :raises ToolError: when its fields are not of the types that the contract names.
    """
    output, title, metadata, files = (
        _checked(result.output, str, "output"),
        _checked(result.title, str, "title"),
        _checked(result.metadata, Mapping, "metadata"),
        _checked(result.attachments, tuple | list, "attachments"),
    )
    shown = _checked(result.display, Block | None, "display")
    own = metadata if shown is None else {**metadata, DISPLAY: to_json(shown)}
    kept, missing = _fitting(files)
    plain = ToolResult(
        output=clean_text("\n\n".join((output, *missing))),
        title=clean_title(title),
        metadata=clean_facts(own),
        attachments=kept,
    )
    return await limit_output(plain, output_dir=output_dir, hint=hint)


async def clean_error(text: str, *, output_dir: Path, hint: str) -> str:
    """Why a call failed, in a text that a model can read."""
    result = ToolResult(output=clean_text(text))
    return (await limit_output(result, output_dir=output_dir, hint=hint)).output


def clean_text(text: str) -> str:
    """The text without halves of letters (surrogates), which no encoding can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_title(title: str) -> str:
    """The title, of a long one the beginning."""
    return clean_text(title[:TITLE_LETTERS])


def clean_facts(facts: Mapping[Any, Any]) -> dict[str, Any]:
    """The metadata that are JSON and fit together; the names of others under `leftOut`."""
    room = FACTS_BYTES
    if 0 <= _size(facts) <= room:
        return dict(facts)
    kept: dict[str, Any] = {}
    missing = []
    for name, fact in facts.items():
        plain = clean_text(fact) if isinstance(fact, str) else fact
        size = _size(plain)
        if isinstance(name, str) and 0 <= size <= room:
            kept[name] = plain
            room -= size
        else:
            missing.append(clean_title(str(name)))
    return {**kept, LEFT_OUT: missing} if missing else kept


def _size(value: object) -> int:
    """The size as JSON in bytes, -1 for no JSON or for what is nested too deep to be stored."""
    nested = value
    for _ in range(_ROOM_AROUND):
        nested = [nested]
    try:
        return len(encode(nested)) - 2 * _ROOM_AROUND
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError):
        return -1


def _checked(value: Any, kind: Any, field: str) -> Any:  # noqa: ANN401 - a tool is foreign code
    if isinstance(value, kind):
        return value
    raise ToolError(f"the {field} of the tool's answer is of the type {type(value).__name__}")


def _fitting(files: Iterable[object]) -> tuple[tuple[Attachment, ...], list[str]]:
    """The files that providers take, and notes about the others."""
    kept, missing = [], []
    room = MEDIA_LIMIT_BYTES
    for given in files:
        file = _attachment(given)
        size = _content_bytes(file.url)
        if 0 < size <= room:
            kept.append(file)
            room -= size
        else:
            why = "is empty" if size <= 0 else f"has {size:,} bytes, {room:,} could be attached"
            missing.append(f"[The attachment {clean_title(file.filename or file.mime)} {why}]")
    return tuple(kept), missing


def _content_bytes(url: str) -> int:
    """The bytes that a `data:` URL holds in base64."""
    return (len(url) - url.find(",") - 1) * 3 // 4 - url[-2:].count("=")


def _attachment(given: object) -> Attachment:
    file = _checked(given, Attachment, "attachment")
    name = _checked(file.filename, str | None, "attachment's filename")
    return Attachment(
        mime=clean_text(_checked(file.mime, str, "attachment's mime")),
        url=clean_text(_checked(file.url, str, "attachment's url")),
        filename=name if name is None else clean_title(name),
    )
