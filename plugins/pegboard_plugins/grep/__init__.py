"""The grep tool: it searches files by a regular expression and lists the newest files first."""

from pathlib import Path
from typing import Literal

from pegboard import PermissionContext, Tool, ToolContext, ToolResult, hookimpl, tool
from pegboard.files import named_path

MOST_CONTEXT = 50
"""Lines around a match; who wants more reads the file."""


async def _may_search(here: PermissionContext, pattern: str, path: str, include: str) -> Path:
    """Return the real path to search, once permission rules or the user permit the search."""
    target = await here.require_path(named_path(here, path))
    metadata = {"path": str(target), "include": include}
    await here.require("grep", [pattern], always=["*"], metadata=metadata)
    return target


@tool(
    requires=_may_search,
    aliases={"query": "pattern", "regex": "pattern", "directory": "path", "glob": "include"},
    effect="reads",
    on_cut="Search that file with grep.",
    imports=("pegboard_plugins.grep.linesearch",),
)
async def grep(  # noqa: PLR0913, PLR0917 - as models know them
    here: ToolContext,
    pattern: str,
    path: str = "",  # noqa: ARG001 - for `requires`
    include: str = "",
    type: str = "",  # noqa: A002 - as models know it
    output_mode: Literal["content", "files_with_matches", "count"] = "content",
    context: int = 0,
    before: int = 0,
    after: int = 0,
) -> ToolResult:
    r"""Search files by a regular expression, one line at a time, newest first.

    At most 100 lines. Skips files that git ignores, unless path is one or their folder.

    Args:
        pattern: as in ripgrep; `(?i)` ignores case, `\(` is a parenthesis.
        path: a directory or file.
        include: only names such as `*.py` or `*.{ts,tsx}`.
        type: only files of a language.
        output_mode: lines, file names, or counts per file.
        context: lines around each match.
        before: lines before it.
        after: lines after it.
    """
    from pegboard_plugins.grep.linesearch import found_lines  # loaded while the model thinks

    target = here.granted(_may_search)
    around = (_lines(before, context), _lines(after, context))
    return await found_lines(
        here, pattern, target, include, kind=type, mode=output_mode, around=around
    )


def _lines(wanted: int, otherwise: int) -> int:
    return min(max(wanted or otherwise, 0), MOST_CONTEXT)


@hookimpl
async def register_tools() -> list[Tool]:
    """Register the grep tool."""
    return [grep]
