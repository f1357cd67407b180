"""One call of the grep tool, from its arguments to its result."""

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path

from pegboard import InvalidInputError, ToolContext, ToolError, ToolResult
from pegboard.files import glob_expression
from pegboard.permissions import may_read
from pegboard.unstable import ripgrep
from pegboard_plugins.grep.kinds import KINDS
from pegboard_plugins.grep.lines import Around, Place
from pegboard_plugins.grep.results import Findings, Mode, newest_first, shown
from pegboard_plugins.grep.searching import PARTLY, Query, Search

_HALF = re.compile("[\ud800-\udfff]")


async def found_lines(  # noqa: PLR0913 - what a model can say
    here: ToolContext,
    pattern: str,
    target: Path,
    include: str,
    *,
    kind: str,
    mode: Mode,
    around: tuple[int, int],
) -> ToolResult:
    """Return the lines that match the pattern in `target`, a file or a folder with all below it.

    `include` and `kind` limit the search to some files. `around` holds the numbers of context lines
    before and after each match.

    :raises ToolError: when the search is not valid, fails or takes too long.
    """
    folder = await asyncio.to_thread(_is_folder, target)
    include = include.removeprefix(f"{target}/")
    if _HALF.search(pattern + include):
        raise ToolError("there is half a letter in the pattern, which no text has")
    query = Query(
        pattern=pattern,
        target=target,
        folder=target if folder else target.parent,
        include=include if folder else "",
        names=_names(kind) if folder else (),
        # In a single file even what is no text would be counted.
        counting=folder and mode != "content",
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
    lines = Around(before=around[0], after=around[1])
    return await asyncio.to_thread(shown, findings, pattern, mode, lines)


def _is_folder(target: Path) -> bool:
    """Return whether the target is a folder, not a file.

    :raises ToolError: when the target is neither, does not exist or is not readable.
    """
    if not target.exists():
        raise ToolError(f"{target} does not exist")
    folder = target.is_dir()
    if not folder and not target.is_file():
        raise ToolError(f"{target} is a device, pipe or socket, which has no end to search")
    if not os.access(target, os.R_OK | (os.X_OK if folder else 0)):
        raise ToolError(f"{target} cannot be read")
    return folder


def _sayable(places: Sequence[Place]) -> list[Place]:
    """Return the places, without files whose names are not UTF-8: no tool can open such a file."""
    return [each for each in places if "\ufffd" not in each.path or Path(each.path).exists()]


def _readable(here: ToolContext, places: Sequence[Place]) -> list[Place]:
    """Return the places, without files such as `.env` that the read tool does not open unasked."""
    home = here.session.home
    paths = {place.path for place in places}
    allowed = {path for path in paths if may_read(here.session.rulesets, path, home=home)}
    return [place for place in places if place.path in allowed]


def _names(kind: str) -> tuple[str, ...]:
    if kind and kind not in KINDS:
        raise ToolError(f"there is no type {kind!r}; there are {', '.join(KINDS)}")
    return KINDS[kind] if kind else ()


def _expression(include: str) -> re.Pattern[str]:
    try:
        return glob_expression(include)
    except InvalidInputError as error:
        raise ToolError(str(error)) from error
