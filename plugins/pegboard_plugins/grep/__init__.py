"""The grep tool: lines of files by a regular expression, the newest files first."""

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path

from pegboard import InvalidInputError, Tool, ToolContext, ToolError, ToolResult, hookimpl, tool
from pegboard.kit import glob_expression, may_read, named_path, ripgrep
from pegboard_plugins.grep.kinds import KINDS
from pegboard_plugins.grep.lines import Around, Place
from pegboard_plugins.grep.results import Findings, Mode, newest_first, shown
from pegboard_plugins.grep.searching import PARTLY, Query, Search

MOST_CONTEXT = 50
"""Lines around a match; who wants more reads the file."""
_HALF = re.compile("[\ud800-\udfff]")


async def _requests(here: ToolContext, pattern: str, path: str, include: str) -> Path:
    """The place with links resolved, once it may be searched."""
    target = await here.ask_path(named_path(here, path))
    metadata = {"path": str(target), "include": include}
    await here.ask("grep", [pattern], always=["*"], metadata=metadata)
    return target


@tool(
    asks=_requests,
    aliases={"query": "pattern", "regex": "pattern", "directory": "path", "glob": "include"},
    effect="reads",
    on_cut="Search that file with grep.",
)
async def grep(  # noqa: PLR0913, PLR0917 - as models know them
    here: ToolContext,
    pattern: str,
    path: str = "",
    include: str = "",
    type: str = "",  # noqa: A002 - as models know it
    output_mode: Mode = "content",
    context: int = 0,
    before: int = 0,
    after: int = 0,
) -> ToolResult:
    r"""Search the contents of files by a regular expression, newest files first.

    It looks at one line at a time, so `\n` fits nothing. At most a hundred lines are shown.
    Files that git ignores are left out, unless path is one, or a folder of them.

    Args:
        pattern: as in ripgrep; `(?i)` at the start ignores case, `\(` is a parenthesis.
        path: a directory or file; the working directory if it is left out.
        include: only names such as "*.py" or "*.{ts,tsx}".
        type: only files of a language, such as py or rust.
        output_mode: the lines, only the files' names, or the number of lines of each file.
        context: lines to show around each match.
        before: the same, only before it.
        after: the same, only after it.
    """
    target = await _requests(here, pattern, path, include)
    folder = await asyncio.to_thread(_is_folder, target)
    include = include.removeprefix(f"{target}/")
    if _HALF.search(pattern + include):
        raise ToolError("there is half a letter in the pattern, which no text has")
    query = Query(
        pattern=pattern,
        target=target,
        folder=target if folder else target.parent,
        include=include if folder else "",
        names=_names(type) if folder else (),
        # In a single file even what is no text would be counted.
        counting=folder and output_mode != "content",
    )
    search = Search(here, query, wanted=_expression(include) if folder and include else None)
    rg = await asyncio.to_thread(ripgrep, target, root=here.worktree)
    ending = await search.run(rg)
    places = await asyncio.to_thread(_sayable, search.places)
    readable = await asyncio.to_thread(_readable, here, places)
    findings = Findings(
        places=await asyncio.to_thread(newest_first, readable),
        cut=ending is None,
        partly=(ending is not None and ending.exit_code == PARTLY)
        or len(places) < len(search.places),
        hidden=len(readable) < len(places),
    )
    around = Around(before=_lines(before, context), after=_lines(after, context))
    return await asyncio.to_thread(shown, findings, pattern, output_mode, around)


def _is_folder(target: Path) -> bool:
    """Whether it is a folder; else it is a file."""
    if not target.exists():
        raise ToolError(f"{target} does not exist")
    folder = target.is_dir()
    if not folder and not target.is_file():
        raise ToolError(f"{target} is a device, pipe or socket, which has no end to search")
    if not os.access(target, os.R_OK | (os.X_OK if folder else 0)):
        raise ToolError(f"{target} cannot be read")
    return folder


def _sayable(places: Sequence[Place]) -> list[Place]:
    """What is in files whose names are of letters: others no tool can be told of."""
    return [each for each in places if "\ufffd" not in each.path or Path(each.path).exists()]


def _readable(here: ToolContext, places: Sequence[Place]) -> list[Place]:
    """What is in files that the rules let `read` open without asking: no keys of `.env`."""
    home = here.session.home
    paths = {place.path for place in places}
    allowed = {path for path in paths if may_read(here.session.rulesets, path, home=home)}
    return [place for place in places if place.path in allowed]


def _names(kind: str) -> tuple[str, ...]:
    if kind and kind not in KINDS:
        raise ToolError(f"there is no type {kind!r}; there are {', '.join(KINDS)}")
    return KINDS[kind] if kind else ()


def _lines(wanted: int, otherwise: int) -> int:
    return min(max(wanted or otherwise, 0), MOST_CONTEXT)


def _expression(include: str) -> re.Pattern[str]:
    try:
        return glob_expression(include)
    except InvalidInputError as error:
        raise ToolError(str(error)) from error


@hookimpl
async def register_tools() -> list[Tool]:
    """The grep tool."""
    return [grep]
