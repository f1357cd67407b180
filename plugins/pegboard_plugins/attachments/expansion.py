"""The expansion of one attached file; the code reads the disk, so call it in a thread."""

import base64
import binascii
import io
import json
import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, unquote_to_bytes, urlsplit

import msgspec

from pegboard.files import (
    file_encoding,
    media_content,
    media_mime,
    open_resolved,
    printable_name,
    resolved_path,
    secret_path,
)
from pegboard.schema.part import DIRECTORY_MIME, TEXT_MIME, FilePart
from pegboard.unstable import MEDIA_MIMES, is_text

MAX_LINES = 2000
MAX_BYTES = 51_200
"""opencode `tool/truncation.ts`: 2,000 lines or 50 KiB, whichever comes first."""
MAX_LETTERS = 2000
"""Of one line, as the read tool shows it."""
MEDIA_LIMIT_BYTES = 20 << 20
"""An image or PDF above this size is refused by every provider."""
LISTING_LIMIT = 200

_PROBE_BYTES = 4096
_WITH_ZEROS = ("utf-16", "utf-32")
_PROCESSES = "/proc"
_HERE = frozenset({"", "localhost"})
"""RFC 8089: the host of a `file:` URL."""
_BOM = "\ufeff"


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """An expanded file part: texts to add to the prompt, and the part's new URL and MIME type."""

    texts: tuple[str, ...] = ()
    url: str | None = None
    mime: str | None = None


class _Data(NamedTuple):
    mime: str
    charset: str
    content: bytes


def expansion(
    part: FilePart,
    directory: Path,
    *,
    worktree: Path | None = None,
    on_read: Callable[[Path], None] = lambda _: None,
) -> Expansion:
    """Expand one attached file; report a failure as a text for the model, and raise nothing.

    A relative path starts at `directory`. A path in `worktree` (by default `directory`) must not
    lead out of it, or to a file of secrets, through a link. The function calls `on_read` with the
    path of a text file before it reads the file.
    """
    try:
        split = urlsplit(part.url)
        match split.scheme:
            case "data":
                return _data(part)
            case "file":
                path = directory / _local_path(split)
                return _from_disk(part, path, worktree or directory, split.query, on_read)
            case _:
                return Expansion()
    except (OSError, ValueError) as error:
        name = part.filename or part.url[:80]
        text = f"The attached file {name} could not be read: {error}"
        return Expansion(texts=(text,), mime=TEXT_MIME)


def _local_path(url: SplitResult) -> str:
    if url.netloc.lower() not in _HERE:
        raise ValueError(f"it is on another machine, {url.netloc[:80]}")
    return unquote(url.path)


def _data(part: FilePart) -> Expansion:
    """Expand a `data:` URL: decode a text for the model, encode other content as base64."""
    found = _parse_data_url(part.url)
    if is_text(part.mime) or (not part.mime and is_text(found.mime)):
        text = found.content.decode(found.charset, errors="replace")
        shown = "".join(_bound(text.splitlines(keepends=True)))
        texts = _read_texts(part.filename or "attachment", shown)
        return Expansion(texts=texts, mime=TEXT_MIME)
    return _as_media(part.mime or found.mime, found.content)


def _parse_data_url(url: str) -> _Data:
    """Decode a `data:` URL (RFC 2397), base64 or percent-encoded, in any character set.

    :raises ValueError: when the URL is not valid.
    """
    head, comma, body = url[len("data:") :].partition(",")
    if not comma:
        raise ValueError("its data: URL has no comma")
    mime, *settings = (piece.strip() for piece in head.split(";"))
    charset = "utf-8"
    for setting in settings:
        name, _, value = setting.partition("=")
        if name.lower() == "charset":
            charset = value.strip("\"'")
    raw = unquote_to_bytes(body)
    if any(setting.lower() == "base64" for setting in settings):
        raw = _base64(raw)
    try:
        b" ".decode(charset, "replace")
    except LookupError as error:
        raise ValueError(f"its character set {charset!r} is unknown") from error
    return _Data(mime or TEXT_MIME, charset, raw)


def _base64(raw: bytes) -> bytes:
    """Decode base64 of the standard or the URL-safe alphabet, with or without padding.

    :raises ValueError: when `raw` is not base64.
    """
    plain = b"".join(raw.split()).translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError(f"its data: URL is not base64 ({error})") from error


def _follow_links(path: Path, worktree: Path) -> Path:
    """Return the path with all links resolved.

    :raises ValueError: when a link leaves the project or leads to secrets, or the path is in /proc.
    """
    given, real = Path(os.path.normpath(path)), Path(resolved_path(path))
    if given.is_relative_to(worktree) and not real.is_relative_to(worktree.resolve()):
        raise ValueError("it is a link that leads out of the project")
    if secret_path(real) and not secret_path(given):
        raise ValueError("it is a link to a file of secrets")
    if real.is_relative_to(_PROCESSES):
        raise ValueError("it tells of a process, and of its keys")
    return real


def _from_disk(
    part: FilePart, path: Path, worktree: Path, query: str, on_read: Callable[[Path], None]
) -> Expansion:
    """Expand a file or folder on disk; `query` is the URL's query, which selects lines.

    :raises ValueError: when the file cannot be read; the message names its path.
    """
    try:
        return _file(part, path, _follow_links(path, worktree), query, on_read)
    except FileNotFoundError as error:
        raise ValueError(f"{path} does not exist") from error
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from error


def _file(
    part: FilePart, path: Path, real: Path, query: str, on_read: Callable[[Path], None]
) -> Expansion:
    if real.is_dir():
        return Expansion(texts=_listing(path), mime=DIRECTORY_MIME)
    as_text = is_text(part.mime or TEXT_MIME)
    # The file may have been replaced: a pipe would block, a link would lead elsewhere.
    with os.fdopen(open_resolved(real, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise ValueError("it is not a regular file")
        start = file.read(_PROBE_BYTES)
        file.seek(0)
        if part.mime in MEDIA_MIMES and b"\0" not in start:
            as_text = True
        if as_text and not media_mime(start):
            on_read(path)
            window = _LineWindow.of(query)
            content = _lines(file, window) or (_NO_LINES if query else "")
            texts = _read_texts(str(path), content, **window.arguments())
            return Expansion(texts=texts, mime=TEXT_MIME)
        if facts.st_size > MEDIA_LIMIT_BYTES:
            raise ValueError(_too_long(facts.st_size))
        return _as_media(part.mime, file.read(MEDIA_LIMIT_BYTES + 1))


def _as_media(mime: str, content: bytes) -> Expansion:
    """Return an expansion with the content as a base64 `data:` URL, which all providers accept.

    The MIME type comes from the bytes if their format is known, else from `mime`.

    :raises ValueError: when the content is too long, is damaged, or does not have the type `mime`.
    """
    if len(content) > MEDIA_LIMIT_BYTES:
        raise ValueError(_too_long(len(content)))
    facts = media_content(content)
    if facts is not None and not facts.whole:
        raise ValueError(f"it is {facts.mime} that ends too early or is damaged")
    if facts is None and mime in MEDIA_MIMES:
        raise ValueError(f"its content is not {mime}")
    mime = facts.mime if facts else mime
    return Expansion(url=f"data:{mime};base64,{base64.b64encode(content).decode()}", mime=mime)


def _too_long(size: int) -> str:
    return f"it has {size:,} bytes; at most {MEDIA_LIMIT_BYTES:,} can be attached"


class _LineWindow(NamedTuple):
    """The lines to read: `start` counts from 1, and `limit` is None for all lines after it."""

    start: int
    limit: int | None

    @classmethod
    def of(cls, query: str) -> "_LineWindow":
        """Return the lines from `start` to `end`, both included, of a URL's query."""
        given = parse_qs(query)
        start = max(int(given.get("start", ["1"])[0]), 1)
        end = given.get("end", [""])[0]
        return cls(start, max(int(end) - start + 1, 0) if end else None)

    def arguments(self) -> dict[str, int]:
        """Return the arguments with which the read tool would select these lines."""
        given = {} if self.start == 1 else {"offset": self.start}
        return given if self.limit is None else given | {"limit": self.limit}


def _lines(content: BinaryIO, window: _LineWindow) -> str:
    """Return the lines in `window`, formatted like the read tool's output; "" if there are none.

    :raises ValueError: when the file is binary.
    """
    encoding = file_encoding(content) or "utf-8"
    content.seek(0)
    if not encoding.startswith(_WITH_ZEROS) and b"\0" in content.read(_PROBE_BYTES):
        raise ValueError("it is a binary file")
    content.seek(0)
    limit = MAX_LINES if window.limit is None else min(window.limit, MAX_LINES)
    lines, room = list[str](), MAX_BYTES
    with io.TextIOWrapper(content, encoding=encoding, errors="replace", newline="\n") as file:
        for number, row in islice(enumerate(_rows(file), 1), window.start - 1, None):
            room -= len(row.encode(errors="replace"))
            if len(lines) == limit or (room < 0 and lines):
                note = f"More lines follow: read on with offset={number}"
                break
            lines.append(f"{number:05}| {row.removeprefix(_BOM)}")
        else:
            note = f"End of file: {window.start + len(lines) - 1} lines"
    return "\n".join(["<file>", *lines, "", f"({note})", "</file>"]) if lines else ""


def _rows(file: io.TextIOWrapper) -> Iterator[str]:
    """Yield each line without its line end, cut to 2,000 characters."""
    while row := file.readline(MAX_LETTERS + 2):
        piece = row
        while piece and not piece.endswith("\n"):
            piece = file.readline(MAX_BYTES)  # a line may be gigabytes long
        row = row.rstrip("\r\n")
        yield row if len(row) <= MAX_LETTERS else f"{row[:MAX_LETTERS]}..."


_EMPTY = "[There is nothing in it.]"
_NO_LINES = "[The file has no such lines.]"
"""A model that sees the call alone cannot tell that from an answer that is lost."""
_CUT = "\n[The attachment goes on; it was cut here.]"


def _bound(lines: list[str]) -> Iterator[str]:
    """Yield lines of an attached text up to the size limits, then a note if lines are missing."""
    room = MAX_BYTES
    for number, line in enumerate(lines):
        room -= len(line.encode(errors="replace"))
        if number == MAX_LINES or room < 0:
            yield _CUT
            return
        yield line


def _read_texts(name: str, content: str, **window: int) -> tuple[str, ...]:
    call = json.dumps({"filePath": name, **window}, ensure_ascii=False)
    return (f"Called the read tool with these arguments: {call}", content or _EMPTY)


def _listing(path: Path) -> tuple[str, ...]:
    with os.scandir(path) as entries:
        found = sorted(entry.name + "/" * entry.is_dir() for entry in entries)
    names = [name for name in found if not secret_path(path / name)]
    shown = [f"  {printable_name(name)}" for name in names[:LISTING_LIMIT]]
    more, secrets = len(names) - len(shown), len(found) - len(names)
    tail = [f"({more} further entries)"] if more else []
    tail += [f"({secrets} that look like secrets are left out)"] if secrets else []
    if tail:
        tail.insert(0, "")
    return _read_texts(str(path), "\n".join([f"{path}/", *shown, *tail]) if found else "")
