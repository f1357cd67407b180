"""The text that a search returns to the model: the newest files first."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Literal

import msgspec

from pegboard import ToolResult
from pegboard.files import is_resolved, printable_name
from pegboard_plugins.grep.lines import LIMIT_LINE, Around, MatchLine, Place, lines_of

Mode = Literal["content", "files_with_matches", "count"]
SHOWN = 100
"""Matches, or files."""
LIMIT_BYTES = 51_200
"""opencode `tool/truncation.ts`: 50 KiB in one answer; lines around matches can be many."""
NOTHING = (
    "No matches found. Files that git ignores are left out: to search those, name one, or their "
    "folder, as path."
)


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The places that match, with the newest files first.

    `cut` says that the search stopped early, since there were enough matches. `partly` says that
    some files could not be searched. `hidden` says that matches are left out for lack of a
    permission.
    """

    places: Sequence[Place]
    cut: bool
    partly: bool
    hidden: bool


def newest_first(places: Iterable[Place]) -> list[Place]:
    """Sort the places by file, with the last modified first, then by line."""
    found = list(places)
    ages = {path: _changed_at(path) for path in {place.path for place in found}}
    return sorted(found, key=lambda place: (-ages[place.path], place.path, place.line))


def _changed_at(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0


def shown(findings: Findings, pattern: str, mode: Mode, around: Around) -> ToolResult:
    """Return the first 100 matches or files as the tool's result, with notes on omissions."""
    counts: dict[str, int] = {}
    for place in findings.places:
        counts[place.path] = counts.get(place.path, 0) + place.count
    total = len(counts) if mode == "files_with_matches" else sum(counts.values())
    more = len(findings.places if mode == "content" else counts) > SHOWN
    if mode == "content":
        lines = _contents(findings.places[:SHOWN], around)
    else:
        lines = _counted(counts, "{}" if mode == "files_with_matches" else "{}: {}")
    fitting, long = _fitting(lines)
    if counts:
        what = "files" if mode == "files_with_matches" else "matches"
        where = f" in {len(counts)} files" if mode == "count" else ""
        fitting.insert(0, f"Found {total}{' or more' if findings.cut else ''} {what}{where}")
    notes = _notes(findings, more=more, long=long)
    return ToolResult(
        output="\n\n".join(["\n".join(fitting) or NOTHING, *notes]),
        title=pattern,
        metadata={"matches": total, "truncated": findings.cut or more or long},
    )


def _fitting(lines: Iterable[str]) -> tuple[list[str], bool]:
    """Return the lines that fit into 50 KiB, and whether further lines do not fit."""
    fitting: list[str] = []
    room = LIMIT_BYTES
    for line in lines:
        room -= len(line.encode(errors="replace")) + 1
        if room < 0:
            return fitting, True
        fitting.append(line)
    return fitting, False


def _notes(findings: Findings, *, more: bool, long: bool) -> Iterator[str]:
    if long:
        yield (
            f"(An answer ends at {LIMIT_BYTES} bytes: use a narrower pattern, path or include, or"
            " less context)"
        )
    elif more:
        yield f"(The first {SHOWN} are shown: use a narrower pattern, path or include)"
    if findings.partly:
        yield "(Some paths could not be read)"
    if findings.hidden:
        yield "(Matches in files that need a permission to be read are left out)"


def _contents(places: Sequence[Place], around: Around) -> Iterator[str]:
    for path, group in groupby(places, key=lambda place: place.path):
        lines = [*_numbered(lines_of(path, group, around))]
        if lines:
            yield from ("", f"{printable_name(path)}:", *lines)


def _counted(counts: Mapping[str, int], shows: str) -> Iterator[str]:
    for path, count in islice(counts.items(), SHOWN):
        if is_resolved(Path(path)):
            yield shows.format(printable_name(path), count)


def _numbered(lines: Iterable[MatchLine]) -> Iterator[str]:
    """Yield each match as `Line N:`, each context line as `Line N-`, and `...` for a gap."""
    last = 0
    pieces = list(lines)
    beside = not all(line.found for line in pieces)
    for line in pieces:
        if beside and last and line.number > last + 1:
            yield "  ..."
        yield f"  Line {line.number}{':' if line.found else '-'} {_cut(line.text)}"
        last = line.number


def _cut(text: str) -> str:
    text = text.rstrip("\r")
    return text if len(text) <= LIMIT_LINE else f"{text[:LIMIT_LINE]}..."
