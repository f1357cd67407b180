"""The glob tool: files by name, the newest first."""

import asyncio
import heapq
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pegboard import Tool, ToolContext, ToolError, ToolResult, hookimpl, tool, walk_files

SHOWN = 100
MOST_MATCHES = 100_000
"""So many are looked at to find the newest; a pattern that fits more is too wide."""
TIME_LIMIT_S = 60.0
UNUSED_BYTES = 16 << 20
"""Output is taken as it comes; what is kept of it besides must not need a file of its own."""

_SIMPLE = re.compile(r"[\w.*?-]+", re.ASCII)
_Aged = tuple[float, str]
"""When a file was changed, and its path below the folder."""


async def _requests(context: ToolContext, pattern: str, path: str) -> Path:
    """The folder with links resolved, once it may be searched."""
    folder = await context.ask_path(context.directory / path)
    await context.ask("glob", [pattern], always=["*"], metadata={"path": str(folder)})
    return folder


@tool(asks=_requests)
async def glob(context: ToolContext, pattern: str, path: str = "") -> ToolResult:
    """Find files by name, such as "**/*.py" or "src/*.{ts,tsx}", newest first.

    A pattern without a slash fits at any depth. Files that git ignores are left out. path is
    the directory to search.
    """
    folder = await _requests(context, pattern, path)
    if not await asyncio.to_thread(folder.is_dir):
        raise ToolError(f"{folder} is not a directory")
    pattern = pattern.removeprefix(f"{folder}/")
    expression = _compiled(pattern)
    if rg := _ripgrep():
        aged = await _Listing(context, folder, expression).run(_argv(rg, pattern))
    else:
        aged = await asyncio.to_thread(_walked, context, folder, expression)
    start = f"{str(folder).rstrip('/')}/"
    newest = [start + name for _, name in heapq.nlargest(SHOWN, aged)]
    more = len(aged) - len(newest)
    note = f"\n\n({more} more files fit: use a narrower pattern or path)" if more else ""
    return ToolResult(
        output="\n".join(newest) + note if newest else "No files found",
        title=os.path.relpath(folder, context.worktree),  # noqa: ASYNC240 - of texts, no I/O
        metadata={"count": len(newest), "truncated": more > 0},
    )


def _ripgrep() -> str | None:
    """The path of ripgrep: on the PATH, or where the extra `ripgrep` has put it."""
    return shutil.which("rg", path=f"{os.environ.get('PATH', os.defpath)}:{sys.prefix}/bin")


def _argv(rg: str, pattern: str) -> list[str]:
    """A listing of at least what fits: ripgrep looks at the last part, if that is a simple one."""
    argv = [rg, "--files", "--hidden", "--null", "--no-messages", "--glob=!.git"]
    name = pattern.rpartition("/")[2]
    if _SIMPLE.fullmatch(name) and name != "*" and "**" not in name:
        # A type, because a glob would bring back files that git ignores.
        argv += [f"--type-add=wanted:{name}", "--type=wanted"]
    return argv


class _Listing:
    """What ripgrep lists, as far as it fits, with its age; it is ended when that is enough.

    The ages are looked up in a thread while ripgrep still walks, since they take as long as the
    walk; in one only, because several would wait for each other at every file.
    """

    def __init__(self, context: ToolContext, folder: Path, expression: re.Pattern[str]) -> None:
        self._context = context
        self._folder = folder
        self._fits = expression.fullmatch
        self._rest = ""
        self._count = 0
        self._names: list[str] = []
        self._aged: list[_Aged] = []
        self._looking: asyncio.Task[None] | None = None
        self._enough = asyncio.Event()

    async def run(self, argv: Sequence[str]) -> list[_Aged]:
        """The files with their ages."""
        listing = asyncio.create_task(
            self._context.run(
                argv,
                cwd=self._folder,
                timeout_s=TIME_LIMIT_S,
                limit_bytes=UNUSED_BYTES,
                on_output=self._hear,
            )
        )
        watching = asyncio.create_task(self._enough.wait())
        try:
            # The listing has its own time limit.
            await asyncio.wait({listing, watching}, return_when=asyncio.FIRST_COMPLETED)
            if listing.done():
                listing.result()
            if self._looking:
                await self._looking
        finally:
            # All end at once: a process that is cancelled is killed.
            tasks = [task for task in (listing, watching, self._looking) if task]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        return self._aged[:MOST_MATCHES]

    def _hear(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\0")
        names = [line for line in lines if self._fits(line)]
        if names and self._count < MOST_MATCHES:
            self._count += len(names)
            self._names += names
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
        if self._count >= MOST_MATCHES:
            self._enough.set()

    async def _look(self) -> None:
        while self._names:
            names, self._names = self._names, []
            self._aged += await asyncio.to_thread(_with_ages, self._folder, names)


def _walked(context: ToolContext, folder: Path, expression: re.Pattern[str]) -> list[_Aged]:
    return _with_ages(folder, _fitting(context, folder, walk_files(folder), expression))


def _fitting(
    context: ToolContext, folder: Path, paths: Iterable[str], expression: re.Pattern[str]
) -> Iterator[str]:
    start = len(str(folder).rstrip("/")) + 1
    found = 0
    for path in paths:
        if context.cancelled or found >= MOST_MATCHES:
            return
        if expression.fullmatch(name := path[start:]):
            found += 1
            yield name


def _with_ages(folder: Path, names: Iterable[str]) -> list[_Aged]:
    """The files that are still there; relative to the open folder, which takes half the time."""
    aged: list[_Aged] = []
    base = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names:
            try:
                aged.append((os.stat(name, dir_fd=base, follow_symlinks=False).st_mtime, name))
            except OSError:
                continue
    finally:
        os.close(base)
    return aged


_TOKEN = re.compile(r"(?P<deep>(?<![^/])\*\*/)|(?P<rest>(?<=/)\*\*$)|(?P<many>\*+)|(?P<one>\?)"
                    r"|(?P<set>\[[!^]?\]?[^\]/]*\])|(?P<open>\{)|(?P<comma>,)|(?P<close>\})"
                    r"|(?P<escape>\\.)|(?P<letter>.)", re.DOTALL)  # fmt: skip
_PLAIN = {
    "deep": "(?:[^/]+/)*",
    "rest": ".+",
    "many": "[^/]*",
    "one": "[^/]",
    "open": "(?:",
    "comma": "|",
    "close": ")",
}


def _compiled(pattern: str) -> re.Pattern[str]:
    """The pattern for paths below the folder; without a slash it fits at any depth."""
    pattern = pattern.removeprefix("./")
    balanced = pattern.count("{") == pattern.count("}")
    deep = "" if "/" in pattern.rstrip("/") else "(?:[^/]+/)*"
    pieces: list[str] = []
    depth = 0
    for match in _TOKEN.finditer(pattern.removeprefix("/")):
        kind, text = match.lastgroup or "", match[0]
        depth += (kind == "open") - (kind == "close")
        literal = (kind == "comma" and depth == 0) or (kind in ("open", "close") and not balanced)
        pieces.append(re.escape(text) if literal else _translated(kind, text))
    try:
        return re.compile(deep + "".join(pieces), re.DOTALL)
    except re.error as error:
        raise ToolError(f"{pattern!r} is not a pattern for file names: {error}") from error


def _translated(kind: str, text: str) -> str:
    if kind == "set":
        body = text[1:-1].replace("\\", "\\\\")
        return f"[^{body[1:]}]" if body[0] in "!^" else f"[{body}]"
    if kind == "escape":
        return re.escape(text[1])
    return _PLAIN.get(kind) or re.escape(text)


@hookimpl
async def register_tools() -> list[Tool]:
    """The glob tool."""
    return [glob]
