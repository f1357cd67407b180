"""The list tool: the tree of a folder.

It is off until the configuration has a table `plugins.list`: read shows a folder, and glob
finds files.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from pegboard import (
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    hookimpl,
    is_resolved,
    may_name,
    printable_name,
    tool,
    walk_files,
)
from pegboard.schema.config import Config

LIMIT_FILES = 100
WALK_FILES = 200_000
"""A walk ends here, also when all of it is to be ignored."""
LEFT_OUT = frozenset(
    {
        ".cache", ".coverage", ".git", ".idea", ".mypy_cache", ".pytest_cache", ".ruff_cache",
        ".tox", ".venv", ".vscode", "__pycache__", "build", "cache", "coverage", "dist", "env",
        "logs", "node_modules", "target", "temp", "tmp", "vendor", "venv",
    }
)  # fmt: skip
"""Folders of what programs make (opencode `tool/ls.ts`), beside what git ignores."""


async def _requests(context: ToolContext, path: str) -> Path:
    """The folder with links resolved, once it may be listed."""
    folder = await context.ask_path(context.directory / path)
    await context.ask("list", [str(folder)], always=["*"], metadata={"path": str(folder)})
    return folder


@tool(id="list", asks=_requests)
async def list_files(
    context: ToolContext, path: str = ".", ignore: list[str] | None = None
) -> ToolResult:
    """Show the files of a folder as a tree, 100 at most, without what git ignores.

    ignore are glob patterns of further files to leave out.
    """
    folder = await _requests(context, path)
    if not await asyncio.to_thread(folder.is_dir):
        raise ToolError(f"{folder} is not a folder")
    found, more = await asyncio.to_thread(_found, folder, tuple(ignore or ()))
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


def _found(folder: Path, ignore: Sequence[str]) -> tuple[list[tuple[str, ...]], bool]:
    """The files by the names on their way, and whether there are more."""
    from pathspec import GitIgnoreSpec  # 20 ms that a start without a call does not pay

    root = f"{str(folder).rstrip('/')}/"
    unwanted = GitIgnoreSpec.from_lines(ignore)
    found: list[tuple[str, ...]] = []
    for seen, file in enumerate(walk_files(folder, skip=LEFT_OUT)):
        names = file.removeprefix(root).split("/")
        if seen >= WALK_FILES or len(found) > LIMIT_FILES:
            break
        if not unwanted.match_file("/".join(names)):
            found.append(tuple(names))
    else:
        return sorted(found, key=_order)[:LIMIT_FILES], len(found) > LIMIT_FILES
    return sorted(found[:LIMIT_FILES], key=_order), True


def _nameable(
    context: ToolContext, folder: Path, files: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """The files that may be named; one behind a link that was put in the way is none."""
    rulesets, home = context.session.rulesets, context.session.home
    return [
        names
        for names in files
        if may_name(rulesets, str(path := folder.joinpath(*names)), home=home) and is_resolved(path)
    ]


def _order(names: Sequence[str]) -> list[tuple[bool, str]]:
    """Folders before files, each by name."""
    return [(place == len(names) - 1, name) for place, name in enumerate(names)]


def _tree(files: Sequence[Sequence[str]]) -> Iterator[str]:
    above: Sequence[str] = ()
    for names in files:
        folders = names[:-1]
        pairs = zip(above, folders, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        for depth in range(shared, len(folders)):
            yield f"{'  ' * (depth + 1)}{printable_name(folders[depth])}/"
        yield f"{'  ' * len(names)}{printable_name(names[-1])}"
        above = folders


@hookimpl
async def register_tools(config: Config) -> list[Tool]:
    """The list tool, where it is wanted."""
    return [list_files] if "list" in config.plugins else []
