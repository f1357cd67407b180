"""The files that a session has changed."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pegboard.schema.message import Turn
from pegboard.schema.part import Completed, Part, PatchPart, ToolPart
from pegboard_files.storednames import name_of


def changed_files(turns: Iterable[Turn]) -> frozenset[Path]:
    """Return the resolved paths of the files that the session's steps and edits have changed.

    Changes of the session's subagents are those of the step that called them.
    """
    return frozenset(
        path.resolve() for turn in turns for part in turn.parts for path in _changed_by(part)
    )


def _changed_by(part: Part) -> Iterator[Path]:
    match part:
        case PatchPart(files=files):
            yield from (Path(name_of(file)) for file in files)
        case ToolPart(state=Completed(metadata={"filediff": {"file": str(file)}})):
            yield Path(file)
        case _:
            pass
