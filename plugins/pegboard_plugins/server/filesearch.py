"""Search in files: names by similarity, lines with ripgrep, or with Python without ripgrep."""

import asyncio
import base64
import os
import re
import sys
from collections.abc import Iterable
from heapq import nsmallest
from pathlib import Path

import msgspec

from pegboard import InvalidInputError, PermissionDeniedError, ToolError
from pegboard.files import walk_files
from pegboard.processes import run_program
from pegboard.unstable import ripgrep
from pegboard_plugins.shared.frontend import Match, Shown, Submatch

TIME_LIMIT_S = 20.0
MOST_MATCHES = 500
MOST_PER_FILE = 10
LONGEST_LINE = 2000
LONGEST_FILE_BYTES = 4 << 20
LONGEST_OUTPUT_BYTES = 16 << 20
OF_THE_SYSTEM = ("/proc", "/sys", "/dev")
"""Folders of the system, which no search enters: processes with their keys, endless files."""


def no_system(path: Path) -> Path:
    """Return the path; reject a path that belongs to the operating system.

    :raises PermissionDeniedError: for a path below `/proc`, `/sys` or `/dev`.
    """
    if any(path.is_relative_to(folder) for folder in OF_THE_SYSTEM):
        raise PermissionDeniedError(f"not a project's: {str(path)[:200]}")
    return path


def best_names(names: Iterable[str], query: str, limit: int) -> list[str]:
    """Return the names that contain the letters of the query in order, the best first."""
    wanted = query.lower().strip()
    scored = ((_distance(name, wanted), name) for name in names)
    found = ((score, name) for score, name in scored if score is not None)
    return [name for _, name in nsmallest(limit, found)]


def _distance(name: str, wanted: str) -> tuple[int, int, int] | None:
    """Return the distance of a name from the query `wanted`; None if the name lacks a letter."""
    lower = name.lower()
    last = lower.rstrip("/").rpartition("/")[2]
    if wanted in last:
        return (0 if last.startswith(wanted) else 1, name.count("/"), len(name))
    if wanted in lower:
        return (2, lower.index(wanted), len(name))
    place = first = -1
    for letter in wanted:
        place = lower.find(letter, place + 1)
        if place < 0:
            return None
        first = place if first < 0 else first
    return (3, place - first, len(name))


async def search(folder: Path, pattern: str, *, root: Path) -> list[Match]:
    """Search the lines of the files below a folder of the project `root` for a regular expression.

    A separate process searches, since a regular expression may take for ever.

    :raises InvalidInputError: when the pattern is not a regular expression.
    """
    if "\0" in pattern:
        raise InvalidInputError("a pattern has no NUL")
    if rg := await asyncio.to_thread(ripgrep, folder, root=root):
        command = [*rg, "--json"]
        command += [f"--glob=!{each}" for each in OF_THE_SYSTEM if folder == Path("/")]
        command += [f"--max-count={MOST_PER_FILE}", "--regexp", pattern, "--", "."]
    else:
        command = [sys.executable, "-P", __file__, pattern]
    output, code = await _output(command, folder)
    if code == 2 and not output.strip():  # noqa: PLR2004 - what both answer to a bad pattern
        raise InvalidInputError(f"not a regular expression: {pattern[:200]!r}")
    return _matches(output)


async def _output(command: list[str], folder: Path) -> tuple[bytes, int | None]:
    """Run the search command; return its output up to `LONGEST_OUTPUT_BYTES`, and its exit code."""
    try:
        done = await run_program(
            command,
            cwd=folder,
            env=os.environ,
            timeout_s=TIME_LIMIT_S,
            limit_bytes=LONGEST_OUTPUT_BYTES,
        )
    except ToolError:  # the folder has gone meanwhile
        return b"", 1
    return done.output, done.exit_code


def _matches(output: bytes) -> list[Match]:
    found: list[Match] = []
    for line in output.split(b"\n"):
        if not line.startswith(b'{"type":"match"'):
            continue
        try:
            data = msgspec.json.decode(line)["data"]
        except msgspec.DecodeError:  # the last line of an output that was cut
            break
        found.append(_match(data))
        if len(found) == MOST_MATCHES:
            break
    return found


def _match(data: dict[str, object]) -> Match:
    hits = data["submatches"]
    assert isinstance(hits, list)
    return Match(
        path=Shown(text=_decode(data["path"]).removeprefix("./")),
        lines=Shown(text=_decode(data["lines"])[:LONGEST_LINE]),
        line_number=_number(data["line_number"]),
        absolute_offset=_number(data["absolute_offset"]),
        submatches=tuple(
            Submatch(match=Shown(text=_decode(hit["match"])), start=hit["start"], end=hit["end"])
            for hit in hits
        ),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _decode(shown: object) -> str:
    """Return a text from ripgrep's JSON, where text that is not UTF-8 is base64."""
    assert isinstance(shown, dict)
    if "text" in shown:
        return str(shown["text"])
    return base64.b64decode(shown["bytes"]).decode("utf-8", "replace")


def main(pattern: str) -> int:
    """Search the files of the current folder; print the matches in ripgrep's format."""
    try:
        expression = re.compile(pattern.encode())
    except re.error:
        return 2
    for path in walk_files(Path.cwd()):
        of_system = any(path.startswith(f"{folder}/") for folder in OF_THE_SYSTEM)
        for line in () if of_system else _file_matches(path, expression):
            sys.stdout.buffer.write(msgspec.json.encode({"type": "match", "data": line}) + b"\n")
    return 0


def _file_matches(path: str, expression: re.Pattern[bytes]) -> list[dict[str, object]]:
    place = Path(path)
    try:
        if not place.is_file() or place.stat().st_size > LONGEST_FILE_BYTES:
            return []
        content = place.read_bytes()
    except OSError:
        return []
    if b"\0" in content:
        return []
    found: list[dict[str, object]] = []
    offset = 0
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        hits = [] if len(line) > LONGEST_LINE else list(expression.finditer(line))
        if hits:
            found.append(_line(place, number, offset, line, hits))
            if len(found) == MOST_PER_FILE:
                break
        offset += len(line)
    return found


def _line(
    path: Path, number: int, offset: int, line: bytes, hits: list[re.Match[bytes]]
) -> dict[str, object]:
    return {
        "path": {"text": str(path.relative_to(Path.cwd()))},
        "lines": {"text": line.decode("utf-8", "replace")},
        "line_number": number,
        "absolute_offset": offset,
        "submatches": [
            {
                "match": {"text": hit[0].decode("utf-8", "replace")},
                "start": hit.start(),
                "end": hit.end(),
            }
            for hit in hits
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
