"""The grep tool: lines of files by a regular expression, the newest files first."""

import asyncio
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from pathlib import Path

import msgspec
from msgspec.structs import replace

from pegboard import (
    ProcessResult,
    Ruleset,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    hookimpl,
    judge,
    secret_path,
    tool,
)

SHOWN = 100
MOST_MATCHES = 5000
"""So many are looked at to find those in the newest files; then the search is ended."""
LIMIT_LINE = 2000
TIME_LIMIT_S = 60.0
FOUND, NOTHING, PARTLY = 0, 1, 2
"""How ripgrep ends, and our own search with it."""


class _Match(msgspec.Struct, frozen=True):
    path: str
    line: int
    text: str


async def _requests(context: ToolContext, pattern: str, path: str, include: str) -> Path:
    """The place with links resolved, once it may be searched."""
    target = await context.ask_path(context.directory / path)
    metadata = {"path": str(target), "include": include}
    await context.ask("grep", [pattern], always=["*"], metadata=metadata)
    return target


@tool(asks=_requests)
async def grep(context: ToolContext, pattern: str, path: str = "", include: str = "") -> ToolResult:
    """Search the contents of files by a regular expression, line by line, newest files first.

    include limits it to file names, such as "*.py" or "*.{ts,tsx}"; path is the directory or
    file to search. Files that git ignores are left out.
    """
    target = await _requests(context, pattern, path, include)
    if not await asyncio.to_thread(target.exists):
        raise ToolError(f"{target} does not exist")
    search = _Search(context)
    ending = await search.run(_argv(pattern, target, include))
    if ending is not None:
        _check(ending)
    allowed = await asyncio.to_thread(_readable, context, search.matches)
    matches = await asyncio.to_thread(_newest_first, allowed)
    result = _result(matches, pattern, cut=ending is None, ending=ending)
    if len(allowed) == len(search.matches):
        return result
    note = "(Matches in files that need a permission to be read are left out)"
    return replace(result, output=f"{result.output}\n\n{note}")


def _argv(pattern: str, target: Path, include: str) -> list[str]:
    # On the PATH, or where the extra `ripgrep` has put it.
    search = f"{os.environ.get('PATH', os.defpath)}:{sys.prefix}/bin"
    if rg := shutil.which("rg", path=search):
        argv = [rg, "--line-number", "--with-filename", "--null", "--no-heading", "--color=never"]
        argv += ["--hidden", "--no-messages", "--glob=!.git", "--max-columns=4000"]
        argv += ["--max-columns-preview", f"--regexp={pattern}"]
        # A type where it can be: a glob brings back files that git ignores.
        if "/" in include:
            argv.append(f"--glob={include}")
        elif include:
            argv += [f"--type-add=wanted:{include}", "--type=wanted"]
        return [*argv, "--", str(target)]
    # In a process of its own, because an expression can take for ever and cannot be stopped.
    program = str(Path(__file__).with_name("search.py"))
    return [sys.executable, "-P", program, pattern, str(target), include]


class _Search:
    """The matches that a process reports, and its end once there are enough."""

    def __init__(self, context: ToolContext) -> None:
        self.matches: list[_Match] = []
        self._context = context
        self._rest = ""
        self._enough = asyncio.Event()

    async def run(self, argv: list[str]) -> ProcessResult | None:
        """How the search ended, None when we ended it."""
        searching = asyncio.create_task(
            self._context.run(
                argv, timeout_s=TIME_LIMIT_S, limit_bytes=1 << 14, on_output=self._hear
            )
        )
        watching = asyncio.create_task(self._enough.wait())
        try:
            # The search has its own time limit.
            await asyncio.wait({searching, watching}, return_when=asyncio.FIRST_COMPLETED)
            return searching.result() if searching.done() else None
        finally:
            # Both end at once: a process that is cancelled is killed.
            for task in (searching, watching):
                task.cancel()
            await asyncio.wait({searching, watching})

    def _hear(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            path, zero, found = line.partition("\0")
            number, colon, content = found.partition(":")
            if zero and colon and number.isdigit():
                self.matches.append(_Match(path, int(number), content))
        if len(self.matches) >= MOST_MATCHES:
            self._enough.set()


def _check(ending: ProcessResult) -> None:
    if ending.timed_out:
        raise ToolError(
            f"the search took longer than {TIME_LIMIT_S:.0f} seconds: search less, or a simpler"
            " expression"
        )
    if ending.exit_code not in (FOUND, NOTHING, PARTLY) or (
        ending.exit_code == PARTLY and ending.output.strip() and "\0" not in ending.output
    ):
        raise ToolError(f"the search failed: {ending.output.strip()[-LIMIT_LINE:]}")


def _readable(context: ToolContext, matches: Sequence[_Match]) -> list[_Match]:
    """The matches in files that the rules let `read` open without asking: no keys of `.env`."""
    paths = {match.path for match in matches}
    readable = {path for path in paths if _may_read(context.session.rulesets, path)}
    return [match for match in matches if match.path in readable]


def _may_read(rulesets: Sequence[Ruleset], path: str) -> bool:
    """Whether the rules allow it; for a file of secrets, those that are about such files."""
    if not secret_path(Path(path)):
        verdict = judge(rulesets, "read", [path], home=Path.home())
        # Without a source no rule speaks of reading at all.
        return verdict.action == "allow" or not verdict.source
    narrow = tuple(
        rule
        for ruleset in rulesets
        for rule in ruleset.rules
        if rule.permission == "read" and rule.pattern != "*"
    )
    own = [Ruleset(source="config", rules=narrow)]
    return judge(own, "read", [path], home=Path.home()).action == "allow"


def _newest_first(matches: Iterable[_Match]) -> list[_Match]:
    ages: dict[str, float] = {}
    found = list(matches)
    for match in found:
        if match.path not in ages:
            ages[match.path] = _changed_at(match.path)
    return sorted(found, key=lambda match: (-ages[match.path], match.path, match.line))


def _changed_at(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0


def _result(
    matches: list[_Match], pattern: str, *, cut: bool, ending: ProcessResult | None
) -> ToolResult:
    shown = list(islice(matches, SHOWN))
    lines = [f"Found {len(matches)}{' or more' if cut else ''} matches"] if shown else []
    for path, group in groupby(shown, key=lambda match: match.path):
        lines += ["", f"{path}:", *(f"  Line {match.line}: {_cut(match.text)}" for match in group)]
    if len(matches) > len(shown):
        lines += ["", f"(The first {SHOWN} are shown: use a narrower pattern, path or include)"]
    if ending is not None and ending.exit_code == PARTLY:
        lines += ["", "(Some paths could not be read)"]
    return ToolResult(
        output="\n".join(lines).strip() or "No matches found",
        title=pattern,
        metadata={"matches": len(matches), "truncated": cut or len(matches) > len(shown)},
    )


def _cut(text: str) -> str:
    text = text.rstrip("\r")
    return text if len(text) <= LIMIT_LINE else f"{text[:LIMIT_LINE]}..."


@hookimpl
async def register_tools() -> list[Tool]:
    """The grep tool."""
    return [grep]
