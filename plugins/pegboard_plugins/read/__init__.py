"""The read tool: it shows a text file, notebook, image or PDF, or the names in a folder."""

import asyncio
import base64
import os
import stat
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pegboard.files
from pegboard import (
    Attachment,
    PermissionContext,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    hookimpl,
    tool,
)
from pegboard.files import named_path
from pegboard.schema.part import Completed, ToolPart

if TYPE_CHECKING:
    from pegboard.display import Block
    from pegboard_plugins.read.encodings import LineSource

LIMIT_LINES = 2000
LIMIT_LINE = 2000
"""Letters of a line that are shown."""
LIMIT_BYTES = 51_200
"""opencode `tool/read.ts`: 50 KiB in one answer."""
LONGEST_BYTES = 4 * (LIMIT_LINE + 1)
"""As many letters as are shown, and one more, have at most so many bytes."""
SKIPPED_BYTES = 1 << 18
SCAN_BYTES = 512 << 20
"""How far into a file we look for a line: about a second."""
MEDIA_BYTES = 20 << 20
PROBE_BYTES = 4096
CONTROL_SHARE = 0.3
ZERO_SHARE = 0.7
_ENDLESS = "The last line has no end"
LISTED = 1000
SEEN_NAMES = 20_000
PREVIEW_LINES = 20
_CONTROL = bytes({*range(32)} - set(b"\t\n\v\f\r\x1b\b"))
_MEDIA = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF-": "application/pdf",
}


async def _may_read(context: PermissionContext, filePath: str) -> Path:
    """Return the file's real path, once permission rules or the user permit reading it."""
    given = named_path(context, filePath)
    path = await context.require_path(given)
    # As it was named and as it is: a rule about `.env` holds for a link to it, too.
    patterns = list(dict.fromkeys((os.path.normpath(given), str(path))))  # noqa: ASYNC240 - texts
    await context.require("read", patterns, always=["*"], metadata={"filepath": str(path)})
    return path


def _drawn(part: ToolPart) -> "Block | None":
    """Return the file's lines for display, collapsed, or None before the call completes."""
    if not isinstance(part.state, Completed):
        return None
    import pegboard.display  # not before a call is drawn
    import pegboard.permissions  # not before a call is drawn
    import pegboard.unstable  # not before a call is drawn

    match part.state.input:
        case {"offset": int(first), "limit": int(many)}:
            lines = f":{first}-{first + many - 1}"
        case {"offset": int(first)}:
            lines = f":{first}-"
        case _:
            lines = ""
    output = part.state.output.split("\n")
    body = "\n".join(line for line in output if not (line[:1] == "<" and line[-1:] == ">"))
    title = pegboard.unstable.subject_of(part.state.input)
    return pegboard.display.block_of_text(body, title=f"{title}{lines}", fold=0)


_ALIASES = {**dict.fromkeys(("path", "file", "filename"), "filePath"), "start_line": "offset"}


@tool(
    requires=_may_read,
    draw=_drawn,
    aliases=_ALIASES,
    effect="reads",
    on_cut="Read parts of that file with read, offset and limit.",
)
async def read(
    context: ToolContext,
    filePath: str,  # noqa: ARG001 - for `requires`
    offset: int = 1,
    limit: int = LIMIT_LINES,
) -> ToolResult:
    """Read a file, whole unless it is very long; several files in one step.

    Each line comes as its number, `| ` and its text, cut after 2,000 letters. Pictures and PDFs
    are attached, a directory is listed.

    Args:
        filePath: absolute or relative to the working directory.
        offset: the first line, from 1.
        limit: how many lines.
    """
    path = context.granted(_may_read)
    if offset < 0 or limit < 1:
        raise ToolError(f"offset {offset}, limit {limit}: both count from 1")
    title = os.path.relpath(path, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    return await asyncio.to_thread(_read, context, path, title, max(offset, 1) - 1, limit)


def _read(context: ToolContext, path: Path, title: str, skipped: int, limit: int) -> ToolResult:
    from pegboard.unstable import marked_encoding  # not before a file is read

    if path.is_dir():
        return _listing(context, path, title)
    with _open_regular(path) as file:
        start = file.read(PROBE_BYTES)
        file.seek(0)
        if mime := _media_type(start):
            context.files.note_read(path)
            return _media(file, mime, path, title)
        encoding = marked_encoding(start)
        if not encoding and _is_binary(start):
            raise ToolError(f"{path} is a binary file: {_way_out(start)}")
        # Noted before it is read: a change in between is then noticed, not overlooked.
        context.files.note_read(path)
        source, note = _source(file, path, encoding)
        window = _Window(source, path, offset=skipped, limit=limit)
        return window.result(title, note, file if source is file else None)


def _source(file: BinaryIO, path: Path, encoding: str) -> "tuple[LineSource, str]":
    """Return the source of a file's lines, and a note on its format for the model, or ""."""
    if path.suffix == ".ipynb" and os.fstat(file.fileno()).st_size <= MEDIA_BYTES:
        from pegboard_plugins.read.notebook import cells_text  # only notebooks pay for it

        cells = cells_text(file.read())
        if cells is not None:
            return BytesIO(cells.encode(errors="replace")), "the cells of a notebook, in JSON"
        file.seek(0)
    from pegboard_plugins.read.encodings import Transcoded

    match encoding:
        case "":
            return file, ""
        case "utf-8":
            return Transcoded(file, encoding), "UTF-8 with a byte order mark"
        case _:
            return Transcoded(file, encoding), encoding.upper()


def _open_regular(path: Path) -> BinaryIO:
    """Open a regular file without following links.

    :raises ToolError: when the file does not exist, cannot be read, or is not regular: reading a
        pipe could block for ever.
    """
    try:
        number = pegboard.files.open_resolved(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError as error:
        near = ", ".join(map(pegboard.files.printable_name, _near_names(path)))
        hint = f". Did you mean {near}?" if near else ""
        raise ToolError(f"{path} does not exist{hint}") from error
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from error
    file = os.fdopen(number, "rb")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        file.close()
        raise ToolError(f"{path} is not a regular file, but a device, pipe or socket")
    return file


def _near_names(path: Path) -> list[str]:
    """Return up to three files in the folder with names that resemble the missing file's name."""
    try:
        names = _names(path.parent)
    except OSError:
        return []
    wanted = path.name.lower()
    containing = [name for name in names if wanted in name.lower() or name.lower() in wanted]
    from difflib import get_close_matches  # 1 ms, for a name that is wrong

    close = get_close_matches(path.name, names, n=3)
    near = [
        name
        for name in dict.fromkeys(containing + close)
        if not pegboard.files.secret_path(Path(name))
    ]
    return [str(path.parent / name) for name in near[:3]]


def _names(folder: Path) -> list[str]:
    number = pegboard.files.open_resolved(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(number) as entries:
            seen = islice(entries, SEEN_NAMES)
            return sorted(entry.name + "/" * _is_folder(entry) for entry in seen)
    finally:
        os.close(number)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circle of links
        return False


def _listing(context: ToolContext, path: Path, title: str) -> ToolResult:
    try:
        seen = _names(path)
    except OSError as error:
        raise ToolError(f"{path} cannot be listed: {error.strerror}") from error
    rulesets, home = context.session.rulesets, context.session.home
    names = [
        name
        for name in seen
        if pegboard.permissions.may_name(rulesets, f"{path}/{name}".rstrip("/"), home=home)
    ]
    shown = [pegboard.files.printable_name(name) for name in names[:LISTED]]
    rest = len(names) - len(shown)
    more = f"\n\n({rest}{' or more' * (len(seen) >= SEEN_NAMES)} further entries)" if rest else ""
    if secrets := len(seen) - len(names):
        more += f"\n\n({secrets} that look like secrets are left out: read would ask)"
    return ToolResult(
        output="\n".join([f"{path}/", *(f"  {name}" for name in shown)]) + more,
        title=title,
        metadata={
            "preview": "\n".join(shown[:PREVIEW_LINES]),
            "truncated": bool(rest),
            "loaded": [],
            "display": {
                "type": "directory",
                "path": str(path),
                "entries": shown,
                "offset": 1,
                "totalEntries": len(names),
                "truncated": bool(rest),
            },
        },
    )


def _media_type(start: bytes) -> str:
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for sign, mime in _MEDIA.items() if start.startswith(sign)), "")


def _is_binary(start: bytes) -> bool:
    if not start:
        return False
    control = len(start) - len(start.translate(None, _CONTROL))
    return b"\0" in start or control > len(start) * CONTROL_SHARE


def _way_out(start: bytes) -> str:
    """Return how to read a binary file; UTF-16 without a byte order mark counts as binary."""
    for name, zeros, letters in (("LE", start[1::2], start[::2]), ("BE", start[::2], start[1::2])):
        if zeros.count(0) > len(zeros) * ZERO_SHARE and b"\0" not in letters:
            return f"if it is text, `iconv -f UTF-16{name} -t UTF-8` in bash converts it"
    return "bash can look into it, move or remove it"


def _media(file: BinaryIO, mime: str, path: Path, title: str) -> ToolResult:
    content = file.read(MEDIA_BYTES + 1)
    if len(content) > MEDIA_BYTES:
        raise ToolError(f"{path} is larger than {MEDIA_BYTES >> 20} MiB, too large to be shown")
    kind = "PDF" if mime == "application/pdf" else "picture"
    url = f"data:{mime};base64,{base64.b64encode(content).decode()}"
    return ToolResult(
        output=f"The {kind} {title} is attached.",
        title=title,
        metadata={"preview": "", "truncated": False, "loaded": []},
        attachments=(Attachment(mime=mime, url=url, filename=path.name),),
    )


class _TooFarError(ToolError):
    """The error for a line that lies more than 512 MiB deep in a file."""


class _Window:
    """The lines of a file from `offset` on, at most `limit`; only these are held in memory."""

    def __init__(self, file: "LineSource", path: Path, *, offset: int, limit: int) -> None:
        self._file = file
        self._path = path
        self._offset = offset
        self._limit = limit
        self._scanned = 0
        self._rows = self._lines()

    def result(self, title: str, about: str, file: BinaryIO | None) -> ToolResult:
        """Return the lines as a result, with the note `about` and one on the encoding of `file`."""
        from pegboard.files import file_encoding  # not before a file is read
        from pegboard_plugins.read.encodings import encoding_note

        skipped = sum(1 for _ in islice(self._rows, self._offset))
        if skipped < self._offset:
            raise ToolError(
                f"{self._path} has only {skipped} lines; there is no line {self._offset + 1}"
            )
        raw, reason = self._collect()
        # Of ASCII alone it does not matter, and only few files have more.
        asked = file is not None and not all(map(bytes.isascii, raw))
        encoding = file_encoding(file) if file and asked else "utf-8"
        lines = [_decode_line(line, encoding) for line in raw]
        notes = [self._end(len(lines), reason), about, encoding_note(encoding)]
        return self._result(title, lines, notes, truncated=bool(reason))

    def _end(self, count: int, reason: str) -> str:
        end = self._offset + count
        if reason == _ENDLESS:
            return f"Line {end} has no end within {SCAN_BYTES >> 20} MiB: nothing after it is read"
        return f"{reason}: read on with offset={end + 1}" if reason else f"End of file: {end} lines"

    def _result(
        self, title: str, lines: Sequence[str], notes: Sequence[str], *, truncated: bool
    ) -> ToolResult:
        numbered = [f"{number:05}| {line}" for number, line in enumerate(lines, self._offset + 1)]
        note = "; ".join(filter(None, notes))
        end = self._offset + len(lines)
        return ToolResult(
            output="\n".join(["<file>", *numbered, "", f"({note})", "</file>"]),
            title=title,
            metadata={
                "preview": "\n".join(lines[:PREVIEW_LINES]),
                "truncated": truncated,
                "loaded": [],
                "display": {
                    "type": "file",
                    "path": str(self._path),
                    "text": "\n".join(lines),
                    "lineStart": self._offset + 1,
                    "lineEnd": end,
                    **({} if truncated else {"totalLines": end}),
                    "truncated": truncated,
                },
            },
        )

    def _collect(self) -> tuple[list[bytes], str]:
        """Return the lines that fit into the result, and why the rest does not fit, or ""."""
        lines: list[bytes] = []
        size = 0
        try:
            for raw in self._rows:
                if len(lines) == self._limit:
                    return lines, "More lines follow"
                size += len(raw)
                if size > LIMIT_BYTES and lines:
                    return lines, f"An answer ends at {LIMIT_BYTES} bytes"
                lines.append(raw)
        except _TooFarError:
            if not lines:
                raise
            return lines, _ENDLESS
        return lines, ""

    def _lines(self) -> Iterator[bytes]:
        """Yield each line, at most 8,004 bytes of it; skip the rest of a long line."""
        while line := self._file.readline(LONGEST_BYTES):
            self._count(line)
            yield line
            piece = line
            while piece and not piece.endswith(b"\n"):
                piece = self._file.readline(SKIPPED_BYTES)
                self._count(piece)

    def _count(self, piece: bytes) -> None:
        self._scanned += len(piece)
        if self._scanned > SCAN_BYTES:
            raise _TooFarError(
                f"{self._path} is too long to be read up to there: search it with grep, or cut it"
                " with bash"
            )


def _decode_line(raw: bytes, encoding: str) -> str:
    text = pegboard.files.line_text(raw.rstrip(b"\r\n"), encoding)
    return text if len(text) <= LIMIT_LINE else f"{text[:LIMIT_LINE]}..."


@hookimpl
async def register_tools() -> list[Tool]:
    """Return the read tool."""
    return [read]
