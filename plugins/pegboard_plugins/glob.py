"""The glob tool: files by name, the newest first."""

import asyncio
import heapq
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from pegboard import Tool, ToolContext, ToolError, ToolResult, hookimpl, tool, walk_files

SHOWN = 100
MOST_MATCHES = 100_000
"""So many are looked at to find the newest; a pattern that fits more is too wide."""
TIME_LIMIT_S = 60.0


@tool
async def glob(context: ToolContext, pattern: str, path: str = "") -> ToolResult:
    """Find files by name, such as "**/*.py" or "src/*.{ts,tsx}", newest first.

    A pattern without a slash fits at any depth. Files that git ignores are left out. path is
    the directory to search.
    """
    folder = await context.ask_path(context.directory / path)
    await context.ask("glob", [pattern], always=["*"], metadata={"path": str(folder)})
    if not await asyncio.to_thread(folder.is_dir):
        raise ToolError(f"{folder} is not a directory")
    expression = _compiled(pattern.removeprefix(f"{folder}/"))
    if rg := shutil.which("rg"):
        names = await _listed(context, rg, folder, expression)
    else:
        names = await asyncio.to_thread(_walked, context, folder, expression)
    newest = await asyncio.to_thread(_newest, folder, names)
    more = len(names) - len(newest)
    note = f"\n\n({more} more files fit: use a narrower pattern or path)" if more else ""
    return ToolResult(
        output="\n".join(newest) + note if newest else "No files found",
        title=os.path.relpath(folder, context.worktree),  # noqa: ASYNC240 - of texts, no I/O
        metadata={"count": len(newest), "truncated": more > 0},
    )


async def _listed(
    context: ToolContext, rg: str, folder: Path, expression: re.Pattern[str]
) -> list[str]:
    """What ripgrep lists, as far as it fits; it is ended when that is enough."""
    names: list[str] = []
    rest = ""
    enough = asyncio.Event()

    def hear(text: str) -> None:
        nonlocal rest
        *lines, rest = (rest + text).split("\0")
        names.extend(line for line in lines if expression.fullmatch(line))
        if len(names) >= MOST_MATCHES:
            enough.set()

    argv = [rg, "--files", "--hidden", "--null", "--no-messages", "--glob=!.git"]
    listing = asyncio.create_task(
        context.run(argv, cwd=folder, timeout_s=TIME_LIMIT_S, limit_bytes=1, on_output=hear)
    )
    watching = asyncio.create_task(enough.wait())
    try:
        # The listing has its own time limit.
        await asyncio.wait({listing, watching}, return_when=asyncio.FIRST_COMPLETED)
        if listing.done():
            listing.result()
    finally:
        # Both end at once: a process that is cancelled is killed.
        for task in (listing, watching):
            task.cancel()
        await asyncio.wait({listing, watching})
    return names[:MOST_MATCHES]


def _walked(context: ToolContext, folder: Path, expression: re.Pattern[str]) -> list[str]:
    return list(_fitting(context, folder, walk_files(folder), expression))


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


def _newest(folder: Path, names: Iterable[str]) -> list[str]:
    start = f"{str(folder).rstrip('/')}/"
    ages: list[tuple[float, str]] = []
    for name in names:
        with suppress(OSError):
            ages.append((os.lstat(start + name).st_mtime, start + name))
    return [path for _, path in heapq.nlargest(SHOWN, ages)]


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
