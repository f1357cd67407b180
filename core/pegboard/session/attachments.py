"""Files that the user hands over with a prompt: what the model reads of each.

Reads files, so it belongs in a thread.
"""

import base64
import binascii
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qs, unquote, unquote_to_bytes, urlsplit

from pegboard.schema.part import FilePart
from pegboard.truncate import MAX_BYTES, MAX_LINES

MEDIA_LIMIT_BYTES = 20 << 20
"""An image or PDF above this size is refused by every provider."""
LISTING_LIMIT = 200
DIRECTORY_MIME = "application/x-directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """What a file part becomes: texts that are added, and the URL and MIME type it has then."""

    texts: tuple[str, ...] = ()
    url: str | None = None
    mime: str | None = None


def expand_file(part: FilePart, directory: Path) -> Expansion:
    """The expansion of one file; what cannot be read is said in a text, and nothing is raised."""
    split = urlsplit(part.url)
    try:
        match split.scheme:
            case "data":
                return _data(part)
            case "file":
                return _file(part, directory, split.path, split.query)
            case _:
                return Expansion()
    except (OSError, ValueError) as error:
        name = part.filename or part.url[:80]
        return Expansion(texts=(f"The attached file {name} could not be read: {error}",))


def _data(part: FilePart) -> Expansion:
    if not part.mime.startswith("text/"):
        return Expansion()
    head, comma, body = part.url.partition(",")
    if not comma:
        raise ValueError("its data: URL has no comma")
    raw = unquote_to_bytes(body)
    if head.endswith(";base64"):
        try:
            raw = base64.b64decode(raw, validate=True)
        except binascii.Error as error:
            raise ValueError(f"its data: URL is not base64 ({error})") from error
    return Expansion(texts=_read_texts(part.filename or "attachment", raw.decode(errors="replace")))


def _file(part: FilePart, directory: Path, path_text: str, query: str) -> Expansion:
    path = directory / unquote(path_text)
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        return Expansion(texts=_listing(path), mime=DIRECTORY_MIME)
    if not stat.S_ISREG(mode):
        raise ValueError("it is not a regular file")
    if part.mime.startswith("text/"):
        return Expansion(texts=_read_texts(str(path), _lines(path, parse_qs(query))))
    size = path.stat().st_size
    if size > MEDIA_LIMIT_BYTES:
        raise ValueError(f"it has {size:,} bytes; at most {MEDIA_LIMIT_BYTES:,} can be attached")
    encoded = base64.b64encode(path.read_bytes()).decode()
    return Expansion(url=f"data:{part.mime};base64,{encoded}")


def _lines(path: Path, query: dict[str, list[str]]) -> str:
    start = max(int(query.get("start", ["1"])[0]), 1)
    end = int(query["end"][0]) if "end" in query else None
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return "".join(_bounded(islice(file, start - 1, end)))


def _bounded(lines: Iterator[str]) -> Iterator[str]:
    room = MAX_BYTES
    for number, line in enumerate(lines):
        room -= len(line.encode(errors="replace"))
        if number == MAX_LINES or room < 0:
            yield "\n[The file goes on; read the rest with the read tool.]"
            return
        yield line


def _read_texts(name: str, content: str) -> tuple[str, ...]:
    call = json.dumps({"filePath": name}, ensure_ascii=False)
    return (f"Called the read tool with these arguments: {call}", content)


def _listing(path: Path) -> tuple[str, ...]:
    with os.scandir(path) as entries:
        names = sorted(entry.name + "/" * entry.is_dir() for entry in entries)
    shown = names[:LISTING_LIMIT]
    more = len(names) - len(shown)
    tail = [f"[and {more} more]"] if more else []
    call = json.dumps({"path": str(path)}, ensure_ascii=False)
    return (f"Called the list tool with these arguments: {call}", "\n".join([*shown, *tail]))
