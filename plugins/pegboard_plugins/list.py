"""The list tool: it shows a folder as a tree.

The tool is off unless the configuration has a table `plugins.list`: the read tool shows a folder,
and the glob tool finds files.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from heapq import nsmallest
from itertools import takewhile
from pathlib import Path

import pegboard.files
import pegboard.permissions
import pegboard.unstable
from pegboard import PermissionContext, Tool, ToolContext, ToolError, ToolResult, hookimpl, tool
from pegboard.files import named_path
from pegboard.schema.config import Config

LIMIT_FILES = 100
WALK_FILES = 200_000
"""A walk ends here, also when all of it is to be ignored."""
TIME_LIMIT_S = 60.0
FIRST_DEPTH = 3
"""So many folders deep there are, most often, enough files."""
_LOST = "\ufffd"
"""The mark of bytes in a name that are not UTF-8: the walk knows the bytes."""
LEFT_OUT = frozenset(
    {
        ".cache", ".coverage", ".git", ".idea", ".mypy_cache", ".pytest_cache", ".ruff_cache",
        ".tox", ".venv", ".vscode", "__pycache__", "build", "cache", "coverage", "dist", "env",
        "logs", "node_modules", "target", "temp", "tmp", "vendor", "venv",
    }
)  # fmt: skip
"""Folders that programs make (opencode `tool/ls.ts`), in addition to those that git ignores."""


async def _may_list(context: PermissionContext, path: str) -> Path:
    """Return the folder's real path, once permission rules or the user permit the call."""
    folder = await context.require_path(named_path(context, path))
    await context.require("list", [str(folder)], always=["*"], metadata={"path": str(folder)})
    return folder


@tool(id="list", requires=_may_list, effect="reads")
async def list_files(
    context: ToolContext,
    path: str = ".",  # noqa: ARG001 - for `requires`
    ignore: list[str] | None = None,
) -> ToolResult:
    """Show the files of a folder as a tree, 100 at most, without what git ignores.

    ignore are glob patterns of further files to leave out.
    """
    folder = context.granted(_may_list)
    if not await asyncio.to_thread(folder.is_dir):
        raise ToolError(f"{folder} is not a folder")
    if not await asyncio.to_thread(os.access, folder, os.R_OK | os.X_OK):
        raise ToolError(f"{folder} cannot be read")
    found, more = await _find_files(context, folder, tuple(ignore or ()))
    files = await asyncio.to_thread(_nameable, context, folder, found)
    title = os.path.relpath(folder, context.worktree)  # noqa: ASYNC240 - of texts, no I/O
    note = [f"({LIMIT_FILES} files are shown, there are more: list a folder below)"] * more
    if secrets := len(found) - len(files):
        note.append(f"({secrets} that look like secrets are left out: read would ask)")
    return ToolResult(
        output="\n".join([f"{folder}/", *_tree(files), *note]),
        title=title,
        metadata={"count": len(files), "truncated": more},
    )


async def _find_files(
    context: ToolContext, folder: Path, ignore: Sequence[str]
) -> tuple[list[tuple[str, ...]], bool]:
    """Return the paths of up to 100 files, and whether there are more.

    Each path is a tuple of names relative to the folder. Files at a lesser depth come first.
    """
    wanted = _filter(ignore)
    rg = await asyncio.to_thread(pegboard.unstable.ripgrep, folder, root=context.worktree)
    found, whole = await _list_files(context, folder, rg, wanted) if rg else ([], False)
    if not rg or any(_LOST in name for name in found):
        found, whole = await asyncio.to_thread(_walk_files, folder, wanted)
    ways = [tuple(name.split("/")) for name in found[:LIMIT_FILES]]
    return sorted(ways, key=_order), not whole or len(found) > LIMIT_FILES


def _filter(ignore: Sequence[str]) -> Callable[[str], bool]:
    if not ignore:
        return lambda _: True
    rules = pegboard.unstable.IgnoreRules("\n".join(ignore).encode(errors="replace"))

    def wanted(name: str) -> bool:
        folders = (name[:place] for place, letter in enumerate(name) if letter == "/")
        return not any(rules.verdict(folder, is_folder=True) for folder in folders) and (
            not rules.verdict(name, is_folder=False)
        )

    return wanted


async def _list_files(
    context: ToolContext, folder: Path, rg: Sequence[str], wanted: Callable[[str], bool]
) -> tuple[list[str], bool]:
    """Return up to 101 files at the least depth, and whether ripgrep listed all files.

    ripgrep lists files in no order. The first run is limited to three levels, which most often give
    enough files. The second run has no limit.
    """
    left_out = (f"--glob=!{name}/" for name in sorted(LEFT_OUT))
    argv = [*rg, "--files", "--null", *left_out]
    outer = _Listing(wanted)
    whole = await outer.hear(context, folder, [*argv, f"--max-depth={FIRST_DEPTH}"])
    if not whole or len(outer.names) > LIMIT_FILES:
        return outer.names, whole
    every = _Listing(wanted)
    whole = await every.hear(context, folder, argv)
    return every.names, whole


class _Listing:
    """The up to 101 wanted files of least depth in the output of ripgrep."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        self.names: list[str] = []
        self._wanted = wanted
        self._deepest = sys.maxsize
        self._enough = asyncio.Event()
        self._seen = 0
        self._rest = ""

    async def hear(self, context: ToolContext, folder: Path, argv: Sequence[str]) -> bool:
        """Run ripgrep and collect the listed files; return whether ripgrep listed every file."""
        ending = await pegboard.unstable.run_until(
            context,
            argv,
            enough=self._enough,
            on_output=self._take,
            timeout_s=TIME_LIMIT_S,
            cwd=folder,
        )
        return ending is not None and not ending.timed_out and not self._enough.is_set()

    def _take(self, text: str) -> int:
        if self._enough.is_set():
            return 0
        *names, self._rest = (self._rest + text).split("\0")
        self._seen += len(names)
        near = (name for name in names if name.count("/") <= self._deepest and self._wanted(name))
        self.names = nsmallest(LIMIT_FILES + 1, (*self.names, *near), key=_outer)
        if len(self.names) > LIMIT_FILES:
            self._deepest = self.names[-1].count("/")
        if self._seen > WALK_FILES:
            self._enough.set()
        return len(self._rest)


def _walk_files(folder: Path, wanted: Callable[[str], bool]) -> tuple[list[str], bool]:
    """Return the same as `_list_files`, but without ripgrep."""
    start = len(f"{str(folder).rstrip('/')}/")
    found: list[str] = []
    for seen, path in enumerate(pegboard.files.walk_files(folder, skip=LEFT_OUT)):
        if seen >= WALK_FILES or len(found) > LIMIT_FILES:
            return found, False
        if wanted(path[start:]):
            found.append(path[start:])
    return found, True


def _outer(name: str) -> tuple[int, str]:
    """Return a file's sort key: files in outer folders first, then in the order of `walk_files`."""
    return name.count("/"), name.replace("/", "\0")


def _nameable(
    context: ToolContext, folder: Path, files: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Return the files that the model may see, without files behind a link."""
    rulesets, home = context.session.rulesets, context.session.home
    return [
        names
        for names in files
        if pegboard.permissions.may_name(rulesets, str(path := folder.joinpath(*names)), home=home)
        and pegboard.files.is_resolved(path)
    ]


def _order(names: Sequence[str]) -> list[tuple[bool, str]]:
    """Return a path's sort key, by which folders come before files, each in order of names."""
    return [(place == len(names) - 1, name) for place, name in enumerate(names)]


def _tree(files: Sequence[Sequence[str]]) -> Iterator[str]:
    above: Sequence[str] = ()
    for names in files:
        folders = names[:-1]
        pairs = zip(above, folders, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        for depth in range(shared, len(folders)):
            yield f"{'  ' * (depth + 1)}{pegboard.files.printable_name(folders[depth])}/"
        yield f"{'  ' * len(names)}{pegboard.files.printable_name(names[-1])}"
        above = folders


switch = {list_files.id: "plugins.list"}


@hookimpl
async def register_tools(config: Config) -> list[Tool]:
    """Return the list tool if the configuration enables it."""
    return [list_files] if "list" in config.plugins else []
