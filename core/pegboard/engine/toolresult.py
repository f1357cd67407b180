"""Tool results within limits: valid text, and a preview and a file in place of long output."""

import asyncio
import os
import stat
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from pegboard.contract.results import DISPLAY, Attachment, Block, ToolResult
from pegboard.errors import ToolError
from pegboard.ids import PREFIXES
from pegboard.schema.wire import encode, to_json

MAX_LINES = 2000
MAX_BYTES = 51_200
"""opencode `tool/truncation.ts`: 2,000 lines or 50 KiB, whichever comes first."""

MEDIA_LIMIT_BYTES = 20 << 20
"""An image or PDF above this size is refused by every provider."""
KEPT_S = 7 * 24 * 3600.0
"""So long a whole output can be read in its file (opencode `tool/truncation.ts`)."""
KEPT_BYTES = 1 << 30
"""Of all outputs together; beyond it the oldest go before their time."""
SWEEP_EVERY_S = 3600.0
"""How often old outputs are removed."""
LONGEST_OWN_CUT_BYTES = 4 * MAX_BYTES
"""A tool that says to have cut its output has not, if it is longer; line numbers take room."""

_OF_A_SESSION = f"{PREFIXES['session']}_"
_BEGINNINGS = ("tool_", "run_")
"""How the names of stored outputs begin: those of tools, and those of processes."""

Direction = Literal["head", "tail", "both"]
Unit = Literal["lines", "bytes"]


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A truncated text: its start, its end, and the amount that is missing.

    `removed` is a number of lines or bytes, depending on the limit that was exceeded. It is 0 for a
    complete text.
    """

    head: str
    tail: str = ""
    removed: int = 0
    unit: Unit = "lines"

    @property
    def truncated(self) -> bool:
        """Whether any text was removed."""
        return self.removed > 0

    @property
    def text(self) -> str:
        """The text that remains, without a notice about the missing text."""
        return "\n".join(piece for piece in (self.head, self.tail) if piece)

    def with_notice(self, notice: str) -> str:
        """Return the text that remains, with `notice` in the place of the missing text."""
        if not self.truncated:
            return self.head
        return "\n\n".join(piece for piece in (self.head, notice, self.tail) if piece)


class _TextEnd(msgspec.Struct, frozen=True):
    """One end of a truncated text, its number of whole lines, and the limit that was exceeded."""

    text: str
    lines: int
    unit: Unit | None


def truncate(
    text: str,
    *,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
    direction: Direction = "head",
) -> Cut:
    """Cut `text` to both limits; the direction "both" keeps half of each at start and end.

    Only whole lines, ending in LF, are kept. If the first or last line alone is too long, a part of
    it is kept. Bytes are counted in UTF-8, including line breaks.
    """
    lines = text.count("\n") + (not text.endswith("\n"))
    size = _size(text)
    if lines <= max_lines and size <= max_bytes:
        return Cut(head=text)
    head = tail = _TextEnd("", 0, None)
    if direction != "tail":
        share = max_lines, max_bytes
        if direction == "both":
            share = (max_lines + 1) // 2, (max_bytes + 1) // 2
        head = _first(text, *share)
    if direction != "head":
        rest = text[len(head.text) :].removeprefix("\n") if head.lines else text[len(head.text) :]
        tail = _last(rest, max_lines - head.lines, max_bytes - _size(head.text))
    unit: Unit = "bytes" if "bytes" in (head.unit, tail.unit) else "lines"
    if unit == "lines":
        removed = text.count("\n") + 1 - head.lines - tail.lines
    else:
        removed = size - _size(head.text) - _size(tail.text)
    return Cut(head=head.text, tail=tail.text, removed=removed, unit=unit)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(_bytes(text))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _first(text: str, max_lines: int, max_bytes: int) -> _TextEnd:
    end, used, lines = 0, 0, 0
    while lines < max_lines:
        start = end + 1 if lines else 0
        stop = text.find("\n", start)
        line = text[start : stop if stop >= 0 else len(text)]
        used += _size(line) + (lines > 0)
        if used > max_bytes:
            piece = _bytes(line)[:max_bytes].decode("utf-8", "ignore") if not lines else ""
            return _TextEnd(text[:end] + piece, lines, "bytes")
        end, lines = start + len(line), lines + 1
        if stop < 0:
            break
    return _TextEnd(text[:end], lines, "lines")


def _last(text: str, max_lines: int, max_bytes: int) -> _TextEnd:
    begin, used, lines = len(text), 0, 0
    while lines < max_lines:
        stop = begin - 1 if lines else len(text)
        start = text.rfind("\n", 0, stop) + 1
        line = text[start:stop]
        used += _size(line) + (lines > 0)
        if used > max_bytes:
            piece = _bytes(line)[used - max_bytes :].decode("utf-8", "ignore") if not lines else ""
            return _TextEnd(piece + text[begin:], lines, "bytes")
        begin, lines = start, lines + 1
        if start == 0:
            break
    return _TextEnd(text[begin:], lines, "lines")


async def limit_output(result: ToolResult, *, output_dir: Path, hint: str = "") -> ToolResult:
    """Limit the output of a result: a long output is reduced to its start and end.

    If a tool cuts its own output to at most 200 KiB and sets `truncated` in its metadata, the
    output is not changed. `shorten` documents the new metadata.
    """
    if "truncated" in result.metadata and _size(result.output) <= LONGEST_OWN_CUT_BYTES:
        return result
    cut = truncate(result.output, direction="both")
    return await shorten(result, cut, output_dir=output_dir, hint=hint)


async def shorten(result: ToolResult, cut: Cut, *, output_dir: Path, hint: str = "") -> ToolResult:
    """Return the result with `cut` as its output, and the full text in a file of `output_dir`.

    A notice in the output gives the missing amount and the file; `hint` tells the model how to read
    it. The metadata have `truncated`, and `outputPath` if the output was cut. If the tool has
    already stored the full text under `outputPath`, no second file is written. If the file cannot
    be written, for example on a full disk, the notice says that the text is lost.
    """
    if not cut.truncated:
        return replace(result, metadata={**result.metadata, "truncated": False})
    path, missing = result.metadata.get("outputPath"), f"{cut.removed:,} {cut.unit}"
    if path:
        missing += " or more"  # the output may already be a part of the whole
    else:
        try:
            path = str(await asyncio.to_thread(_store, output_dir, result.output))
        except OSError as error:
            notice = f"[{missing} are left out, and lost: no file can be written ({error})]"
            metadata = {**result.metadata, "truncated": True}
            return replace(result, output=cut.with_notice(notice), metadata=metadata)
    notice = f"[{missing} are left out. The whole output is in {path}"
    notice += f". {hint}]" if hint else "]"
    metadata = {**result.metadata, "truncated": True, "outputPath": path}
    return replace(result, output=cut.with_notice(notice), metadata=metadata)


async def sweep(folder: Path) -> None:
    """Remove old output files now and then every hour, until the task is cancelled."""
    while True:
        await asyncio.to_thread(remove_old_outputs, folder, before=time.time() - KEPT_S)
        await asyncio.sleep(SWEEP_EVERY_S)


def remove_old_outputs(folder: Path, *, before: float, most_bytes: int = KEPT_BYTES) -> None:
    """Remove the output files written before the time `before`, in seconds since the epoch.

    Outputs are in `folder` and in its subfolders for sessions. Empty old subfolders are removed
    too. Of the remaining outputs, the oldest are removed until they fit in `most_bytes`.
    """
    kept = 0
    for path, facts in sorted(_outputs(folder), key=lambda each: -each[1].st_mtime):
        kept += facts.st_size
        if facts.st_mtime < before or kept > most_bytes:
            with suppress(OSError):  # another process sweeps too, or the file is not ours
                path.unlink()
    for each in _folders(folder):
        with suppress(OSError):  # it is not empty
            if each.stat().st_mtime < before:
                each.rmdir()


def is_output(path: Path, folder: Path) -> bool:
    """Return whether the path is an output in `folder`, the folder of all outputs."""
    return folder in (path.parent, path.parent.parent) and path.name.startswith(_BEGINNINGS)


def _outputs(folder: Path) -> list[tuple[Path, os.stat_result]]:
    """Return the output files of tools and processes in the folder and its session folders."""
    found = []
    for each in (folder, *_folders(folder)):
        with suppress(OSError), os.scandir(each) as entries:
            for entry in entries:
                if not (entry.name.startswith(_BEGINNINGS) and entry.name.endswith(".txt")):
                    continue
                with suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(facts.st_mode):
                        found.append((Path(entry), facts))
    return found


def _folders(folder: Path) -> list[Path]:
    """Return the subfolders of `folder` for the outputs of single sessions."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [
            Path(entry)
            for entry in entries
            if entry.name.startswith(_OF_A_SESSION) and entry.is_dir(follow_symlinks=False)
        ]
    return []


def _store(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"tool_{os.urandom(8).hex()}.txt"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(file, "wb") as output:
            output.write(_bytes(text))
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return path


TITLE_LETTERS = 500
FACTS_BYTES = 4 << 20
"""The longest metadata: each change of a call sends them to all who watch."""
_ROOM_AROUND = 100
"""Levels kept free of what an encoder can nest: metadata are stored within their part."""
LEFT_OUT = "leftOut"
"""The key under which metadata name what was left out of them."""


async def clean_result(result: ToolResult, *, output_dir: Path, hint: str) -> ToolResult:
    """Return the result without content that cannot be stored or sent; a note names such content.

    :raises ToolError: when a field of the result has the wrong type.
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
    """Return the error of a tool call as valid Unicode, cut to the size limit of tool output."""
    result = ToolResult(output=clean_text(text))
    return (await limit_output(result, output_dir=output_dir, hint=hint)).output


def clean_text(text: str) -> str:
    """Replace lone surrogates, which no encoding can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_title(title: str) -> str:
    """Shorten the title of a tool's result to its beginning."""
    return clean_text(title[:TITLE_LETTERS])


def clean_facts(facts: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the metadata that have a JSON form and together fit in `FACTS_BYTES`.

    The entry `leftOut` lists the names of the other metadata.
    """
    room = FACTS_BYTES
    if 0 <= _json_size(facts) <= room:
        return dict(facts)
    kept: dict[str, Any] = {}
    missing = []
    for name, fact in facts.items():
        plain = clean_text(fact) if isinstance(fact, str) else fact
        size = _json_size(plain)
        if isinstance(name, str) and 0 <= size <= room:
            kept[name] = plain
            room -= size
        else:
            missing.append(clean_title(str(name)))
    return {**kept, LEFT_OUT: missing} if missing else kept


def _json_size(value: object) -> int:
    """Return the size as JSON in bytes, or -1 for a value that is invalid or nested too deep."""
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
    """Return the attachments that providers accept, and notes about the attachments left out."""
    kept, missing = [], []
    room = MEDIA_LIMIT_BYTES
    for given in files:
        file = _attachment(given)
        # The bytes in the base64 of a `data:` URL.
        size = (len(file.url) - file.url.find(",") - 1) * 3 // 4 - file.url[-2:].count("=")
        if 0 < size <= room:
            kept.append(file)
            room -= size
        else:
            why = "is empty" if size <= 0 else f"has {size:,} bytes, {room:,} could be attached"
            missing.append(f"[The attachment {clean_title(file.filename or file.mime)} {why}]")
    return tuple(kept), missing


def _attachment(given: object) -> Attachment:
    file = _checked(given, Attachment, "attachment")
    name = _checked(file.filename, str | None, "attachment's filename")
    return Attachment(
        mime=clean_text(_checked(file.mime, str, "attachment's mime")),
        url=clean_text(_checked(file.url, str, "attachment's url")),
        filename=name if name is None else clean_title(name),
    )
