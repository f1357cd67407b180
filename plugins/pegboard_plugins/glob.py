"""The glob tool: it finds files by name and lists the newest first."""

import asyncio
import heapq
import os
import re
import time
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path

import pegboard.files
import pegboard.permissions
import pegboard.unstable
from pegboard import (
    InvalidInputError,
    PermissionContext,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    hookimpl,
    tool,
)
from pegboard.files import named_path

SHOWN = 100
MOST_MATCHES = 2_000
"""So many are looked at to find the newest; then the search is ended. A look at a file costs more
than to list it, and who asks for more files than that wants a narrower pattern."""
TIME_LIMIT_S = 60.0
NOTHING = (
    "No files found. Files that git ignores are left out: to see those, name their folder as path."
)
TELL_S = 1.0
MOST_WAITING = 16 << 20
"""Letters of names that wait for their ages to be looked up, if a disk is slow."""

_REPLACED = "\ufffd"
"""What stands in ripgrep's list for bytes of a name that are no letters."""
_FOREIGN = "[\udc80-\udcff]"
"""Bytes of a name that are no letters."""
_WILD = frozenset("*?[{\\")
_Aged = tuple[float, str]
"""When a file was changed, and its path below the folder."""


async def _may_search(context: PermissionContext, pattern: str, path: str) -> Path:
    """Return the folder's real path, once permission rules or the user permit the search."""
    folder = await context.require_path(named_path(context, path))
    await context.require("glob", [pattern], always=["*"], metadata={"path": str(folder)})
    return folder


@tool(requires=_may_search, aliases={"query": "pattern", "directory": "path"}, effect="reads")
async def glob(context: ToolContext, pattern: str, path: str = "") -> ToolResult:  # noqa: ARG001 - for `requires`
    """Find files by name, last changed first, at most 100.

    Skips files that git ignores, unless path is their folder or pattern names one.

    Args:
        pattern: such as `**/*.py`; one without a slash fits at any depth.
        path: a directory.
    """
    folder = context.granted(_may_search)
    if not await asyncio.to_thread(folder.is_dir):
        raise ToolError(f"{folder} is not a directory")
    if not await asyncio.to_thread(os.access, folder, os.R_OK | os.X_OK):
        raise ToolError(f"{folder} cannot be read")
    pattern = pattern.removeprefix(f"{folder}/")
    if ".." in pattern.split("/"):
        raise ToolError(f"{pattern!r} leads out of {folder}: say with path where to search")
    try:
        expression = pegboard.files.glob_expression(pattern)
    except InvalidInputError as error:
        raise ToolError(str(error)) from error
    newest = _Newest(folder, expression)
    if rg := await asyncio.to_thread(pegboard.unstable.ripgrep, folder, root=context.worktree):
        whole = await _listed(
            context,
            folder,
            newest,
            [*rg, "--files", "--null", *pegboard.unstable.ripgrep_names([pattern])],
        )
    else:
        whole = await asyncio.to_thread(_walk, context, folder, newest)
    if not newest.count and _WILD.isdisjoint(pattern):  # an exact path, which git may ignore
        await asyncio.to_thread(newest.add, [pattern])
    names, secrets = await asyncio.to_thread(_visible, context, folder, newest.names)
    more = newest.count - len(newest.names)
    return ToolResult(
        output=("\n".join(map(pegboard.files.printable_name, names)) or NOTHING)
        + _notes(newest, secrets, whole=whole),
        title=os.path.relpath(folder, context.worktree),  # noqa: ASYNC240 - of texts, no I/O
        metadata={"count": len(names), "truncated": more > 0 or not whole},
    )


def _notes(newest: "_Newest", secrets: int, *, whole: bool) -> str:
    """Return notes for the model on the files that the list leaves out."""
    more = newest.count - len(newest.names)
    notes = []
    if more and whole:
        notes.append(f"{more} more files fit: use a narrower pattern or path")
    elif more:
        notes.append(
            f"The newest of {newest.count:,} that fit; there are more, not looked at: use a"
            " narrower pattern or path"
        )
    elif not whole:
        notes.append("The search took too long and was ended: use a narrower path")
    if secrets:
        notes.append(f"{secrets} that look like secrets are left out: read would ask")
    if newest.unnamed:
        notes.append(
            f"{newest.unnamed:,} that fit are left out, as their names are not UTF-8: only a"
            " command can open them"
        )
    return "".join(f"\n\n({note})" for note in notes)


def _visible(context: ToolContext, folder: Path, names: Sequence[str]) -> tuple[list[str], int]:
    """Return the files that the model may see, and the number of secret files left out.

    A file that has vanished, or lies behind a link created during the search, is left out too.
    """
    start = f"{str(folder).rstrip('/')}/"
    rulesets, home = context.session.rulesets, context.session.home
    paths = [start + name for name in names]
    allowed = [path for path in paths if pegboard.permissions.may_name(rulesets, path, home=home)]
    return [path for path in allowed if pegboard.files.is_resolved(Path(path))], len(paths) - len(
        allowed
    )


class _Newest:
    """The 100 newest of the files that match the glob pattern.

    Only one thread at a time may use the object. Of files with equal ages, the greater name
    counts as newer.
    """

    def __init__(self, folder: Path, expression: re.Pattern[str]) -> None:
        self._folder = folder
        self._fits = expression.fullmatch
        self._aged: list[_Aged] = []
        self.count = 0
        self.unnamed = 0

    @property
    def full(self) -> bool:
        """Whether 2,000 files have matched the pattern, so that the search can end."""
        return self.count >= MOST_MATCHES

    @property
    def names(self) -> list[str]:
        """The paths of the newest files, relative to the searched folder, the newest first."""
        return [name for _, name in sorted(self._aged, reverse=True)]

    def add(self, names: Iterable[str]) -> None:
        """Add the files with these names, without files that do not match or no longer exist."""
        base = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in filter(self._fits, names):
                if self.full:
                    return
                try:
                    changed_at = os.stat(name, dir_fd=base, follow_symlinks=False).st_mtime
                except OSError:
                    self.unnamed += _REPLACED in name
                    continue
                if not _is_text(name):
                    self.unnamed += 1
                    continue
                self._keep((changed_at, name))
        finally:
            os.close(base)

    def _keep(self, file: _Aged) -> None:
        self.count += 1
        if self.count <= SHOWN:
            heapq.heappush(self._aged, file)
        elif file > self._aged[0]:
            heapq.heapreplace(self._aged, file)


async def _listed(context: ToolContext, folder: Path, newest: _Newest, argv: Sequence[str]) -> bool:
    """Run ripgrep and collect the listed files; return whether ripgrep listed every file."""
    sorting = _Sorting(context, newest)
    try:
        ending = await pegboard.unstable.run_until(
            context,
            argv,
            enough=sorting.enough,
            on_output=sorting.hear,
            timeout_s=TIME_LIMIT_S,
            cwd=folder,
        )
        await sorting.end()
        return ending is not None and not ending.timed_out and not sorting.enough.is_set()
    finally:
        await sorting.close()


class _Sorting:
    """Passes ripgrep's output to a thread, which looks up the files' ages while ripgrep runs.

    There is a single thread, because several threads would wait for each other at every file.
    """

    def __init__(self, context: ToolContext, newest: _Newest) -> None:
        self.enough = asyncio.Event()
        self.looking: asyncio.Task[None] | None = None
        self._context = context
        self._newest = newest
        self._pieces: list[str] = []
        self._waiting = 0
        self._rest = ""
        self._told_at = 0.0

    def hear(self, text: str) -> int:
        """Queue ripgrep's output for the thread; return the length of an incomplete last name.

        If more than `MOST_WAITING` characters wait, set `enough`, which ends ripgrep.
        """
        if self.enough.is_set():
            return 0
        self._pieces.append(text)
        self._waiting += len(text)
        if self._waiting > MOST_WAITING:
            self.enough.set()
        if self.looking is None or self.looking.done():
            self.looking = asyncio.create_task(self._look())
        return len(self._rest)

    async def end(self) -> None:
        """Wait until the thread has looked at all files."""
        if self.looking:
            await self.looking

    async def close(self) -> None:
        """Cancel the lookup of the remaining files' ages."""
        if self.looking:
            self.looking.cancel()
            await asyncio.wait({self.looking})

    async def _look(self) -> None:
        while self._pieces and not self.enough.is_set():
            pieces, self._pieces, self._waiting = self._pieces, [], 0
            await asyncio.to_thread(self._take, "".join(pieces))
            self._tell()
            if self._newest.full:
                self.enough.set()

    def _tell(self) -> None:
        """Report the number of matches as progress: the first at once, then once per second."""
        if self._newest.count and time.monotonic() - self._told_at > TELL_S:
            self._told_at = time.monotonic()
            self._context.progress(metadata={"count": self._newest.count})

    def _take(self, text: str) -> None:
        *names, self._rest = (self._rest + text).split("\0")
        self._newest.add(names)


def _walk(context: ToolContext, folder: Path, newest: _Newest) -> bool:
    """Collect the files of a folder without ripgrep; return whether every file was seen."""
    start = len(str(folder).rstrip("/")) + 1
    paths = takewhile(
        lambda _: not (context.cancelled or newest.full), pegboard.files.walk_files(folder)
    )
    newest.add(path[start:] for path in paths)
    return not newest.full


def _is_text(name: str) -> bool:
    """Return whether the name is valid UTF-8, so that the model can pass it to other tools."""
    return name.isascii() or not re.search(_FOREIGN, name)


@hookimpl
async def register_tools() -> list[Tool]:
    """Return the glob tool."""
    return [glob]
