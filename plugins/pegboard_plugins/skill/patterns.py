"""The check of whether a session works on files that a skill's patterns match."""

import os
from collections.abc import Iterable
from contextlib import suppress

from pegboard import SessionView
from pegboard.errors import InvalidInputError
from pegboard.files import glob_expression
from pegboard.schema.part import ToolPart


def has_read(session: SessionView, patterns: Iterable[str]) -> bool:
    """Return whether the session has read a project file that matches any of the patterns."""
    expressions = []
    for pattern in patterns:
        with suppress(InvalidInputError):
            expressions.append(glob_expression(pattern))
    read = {
        os.path.relpath(session.directory / path, session.worktree)
        for turn in session.turns
        for part in turn.parts
        if isinstance(part, ToolPart) and part.tool == "read"
        if isinstance(path := part.state.input.get("filePath"), str)
    }
    return any(each.fullmatch(path) for each in expressions for path in read)
