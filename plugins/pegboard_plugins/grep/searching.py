"""The process that searches, ripgrep or Pegboard's own program, and the reader of its output."""

import asyncio
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pegboard import ToolContext, ToolError
from pegboard.processes import ProcessResult
from pegboard.unstable import ripgrep_names, run_until
from pegboard_plugins.grep.lines import Place

MOST_MATCHES = 5000
"""So many are looked at to find those in the newest files; then the search is ended."""
TIME_LIMIT_S = 60.0
TELL_S = 1.0
"""How often progress reports the number of matches; the first match is reported at once."""
REASON_CHARS = 2000
FOUND, NOTHING, PARTLY = 0, 1, 2
"""How ripgrep ends, and our own search with it."""

_PLACED = re.compile(r"(\d+):(\d+):")
_OURS = re.compile(r"\\[Az]|\(\?[A-Za-z]*-[A-Za-z]*m")
"""What is about the ends of a text: ripgrep means those of a line only where they are `\\r\\n`."""
_BINARY = re.compile(
    r"(.+): (?:WARNING: stopped searching binary|binary) file (?:after match|matches)"
)
"""What ripgrep says of a file with a zero byte, after the matches before it."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a search.

    `folder` is the target, or the folder of a target that is a file. A file must match one of the
    patterns `names`, if there are any, by its name. It must match `include`, if given, by its path
    below `target`. If `counting`, the search reports the number of matches per file, not the lines.
    """

    pattern: str
    target: Path
    folder: Path
    include: str
    names: tuple[str, ...]
    counting: bool


class Search:
    """A running search, which collects matches from a process and stops it at 5,000 matches."""

    def __init__(
        self, context: ToolContext, query: Query, *, wanted: re.Pattern[str] | None
    ) -> None:
        self._context = context
        self._query = query
        self._wanted = wanted
        self._start = len(f"{str(query.target).rstrip('/')}/")
        self._found: list[Place] = []
        self._binary: set[str] = set()
        self._rest = ""
        self._told_at = 0.0
        self._current = ("", False)
        self._enough = asyncio.Event()

    @property
    def places(self) -> list[Place]:
        """The matches found, without matches in files that turned out to be binary."""
        return [place for place in self._found if place.path not in self._binary]

    async def run(self, rg: Sequence[str] | None) -> ProcessResult | None:
        """Run the search; return the result of the process, or None if enough matches were found.

        `rg` is ripgrep's command, or None without ripgrep. If ripgrep rejects the expression,
        Pegboard's own program tries it.

        :raises ToolError: when the search fails or takes too long.
        """
        known = not _OURS.search(self._query.pattern)
        ending = await self._heard(
            _ripgrep(rg, self._query) if rg and known else _python(self._query)
        )
        if rg and known and ending is not None and _refused(ending):
            ending = await self._heard(_python(self._query))
        self._listen(self._rest)
        if ending is not None:
            _check(ending)
        return ending

    async def _heard(self, argv: Sequence[str]) -> ProcessResult | None:
        self._rest = ""
        return await run_until(
            self._context,
            argv,
            enough=self._enough,
            on_output=self._hear,
            timeout_s=TIME_LIMIT_S,
            # What the user excludes everywhere is about paths below here.
            cwd=self._query.folder,
        )

    def _hear(self, text: str) -> int:
        text = self._rest + text
        start = 0
        while not self._enough.is_set():
            zero = text.find("\0", start)
            end = text.find("\n", zero)
            if zero < 0 or end < 0:
                break
            self._report(text[start:zero], text[zero + 1 : end])
            start = end + 1
        self._rest = text[start:]
        if self._found and time.monotonic() - self._told_at > TELL_S:
            self._told_at = time.monotonic()
            self._context.progress(metadata={"matches": len(self._found)})
        return len(self._rest)

    def _report(self, head: str, facts: str) -> None:
        """Record one match; `head` is the output after the last match, up to the file's path.

        The path may contain line ends, and warnings may come before it. `facts` is the rest.
        """
        begin = head.rfind(f"\n{self._query.target}") + 1
        self._listen(head[:begin])
        if self._fits(head[begin:]):
            self._take(head[begin:], facts)
        if len(self._found) >= MOST_MATCHES:
            self._enough.set()

    def _listen(self, said: str) -> None:
        """Record the files that ripgrep's output reports as binary."""
        self._binary |= {line[1] for line in map(_BINARY.match, said.split("\n")) if line}

    def _fits(self, path: str) -> bool:
        if self._wanted is None:
            return True
        if path != self._current[0]:
            self._current = (path, bool(self._wanted.fullmatch(path[self._start :])))
        return self._current[1]

    def _take(self, path: str, facts: str) -> None:
        if self._query.counting:
            if facts.rstrip().isdigit():
                self._found.append(Place(path=path, count=int(facts)))
        elif placed := _PLACED.match(facts):
            self._found.append(Place(path=path, line=int(placed[1]), start=int(placed[2])))


def _ripgrep(rg: Sequence[str], query: Query) -> list[str]:
    pattern = query.pattern.replace("\0", r"\x00")  # no argument can have it
    argv = [*rg, "--with-filename", "--null", "--no-heading", "--crlf"]
    # On its own: of `--regexp===` ripgrep before version 14 takes no `=` for a part of it.
    argv += ["--regexp", pattern]
    # Of a line the place is enough: its text is read from the file itself.
    argv += ["--count"] if query.counting else ["--line-number", "--byte-offset", "--max-columns=1"]
    argv += ripgrep_names(query.names or (query.include,))
    return [*argv, "--", str(query.target)]


def _python(query: Query) -> list[str]:
    # In a process of its own, because an expression can take for ever and cannot be stopped.
    program = str(Path(__file__).with_name("search.py"))
    facts = msgspec.json.encode(query, enc_hook=str).decode()
    return [sys.executable, "-P", program, facts]


def _refused(ending: ProcessResult) -> bool:
    """Return whether the process rejected the regular expression, and so searched nothing."""
    said = ending.output.strip()
    return ending.exit_code == PARTLY and bool(said) and "\0" not in said


def _check(ending: ProcessResult) -> None:
    if ending.timed_out:
        raise ToolError(
            f"the search took longer than {TIME_LIMIT_S:.0f} seconds: search less, or a simpler"
            " expression"
        )
    if ending.exceeded:
        raise ToolError(f"the search was stopped: {ending.exceeded}")
    if ending.exit_code not in (FOUND, NOTHING, PARTLY) or _refused(ending):
        raise ToolError(f"the search failed: {ending.output.strip()[-REASON_CHARS:]}")
