"""Changes that a revert cannot undo: found in a session's history, and explained."""

from collections.abc import Sequence
from pathlib import Path

from pegboard.contract.backends import Left, Restored
from pegboard.contract.tools import Tool
from pegboard.engine.engine import Engine
from pegboard.engine.tracking.patches import behind
from pegboard.schema.message import Turn
from pegboard.schema.part import Failed, Part, PatchPart, StepStartPart, ToolPart
from pegboard.schema.session import Revert
from pegboard.storage.recovery import INTERRUPTED_CALL

MOST_NAMED = 20
"""More files are counted, not named; the answer of `App.revert` has all."""
_OFF = "snapshots are turned off (`snapshot = false`)"
_NOBODY = "no plugin keeps snapshots"
_NONE = "no snapshot was taken, or the program ended before"
_REASONS = {
    "changed": "edited since",
    "lost": "its copy is gone or damaged",
    "failed": "cannot be written",
    "secret": "a file of secrets, of which no copy is made",
    "large": "too large for a snapshot",
    "many": "git does not track it, and there are too many such files for a snapshot",
    "ignored": "ignored by git, and no tool said that it would change it",
    "restaged": "staged otherwise since, so the index is left",
    "committed": "committed since, so the index is left",
    "unstaged": "what was staged of it before is not in the repository any more",
    "locked": "still staged, as git's index is in use: `git restore --staged {file}`",
    "nested": "in a repository of its own: `git -C {folder} status` shows what changed there",
    "submodule": "in a submodule: `git -C {folder} status` shows what changed there",
}


def left_by(
    turns: Sequence[Turn], *, here: Revert | None, there: Revert | None
) -> tuple[Left, ...]:
    """The changes between two points that cannot be undone, each once."""
    found: dict[str, Left] = {}
    for part in _taken_back(turns, here, there):
        if isinstance(part, PatchPart):
            for file, reason in part.left.items():
                found[file] = Left(path=Path(file), reason=reason)
    return tuple(found.values())


def unseen(
    engine: Engine, turns: Sequence[Turn], *, here: Revert | None, there: Revert | None
) -> str:
    """Why the changes of some reverted steps are unknown, "" when all are known."""
    count, seen, wrote = 0, True, False
    for part in (*_taken_back(turns, here, there), None):
        if part is None or isinstance(part, StepStartPart):
            count += wrote and not seen
            seen, wrote = part is not None and part.snapshot is not None, False
        elif isinstance(part, ToolPart) and not _reads(engine.tools.get(part.tool)):
            wrote = True
            seen = seen and not _was_killed(part)
    if not count:
        return ""
    snapshots = engine.snapshots
    absent = _NOBODY if engine.config.snapshot else _OFF
    why = absent if snapshots is None else snapshots.refused or _NONE
    steps = "1 step" if count == 1 else f"{count} steps"
    return f"files that {steps} changed are as they are: {why}"


def _was_killed(part: ToolPart) -> bool:
    """Whether the program ended during the call, so that its changes are unknown."""
    return isinstance(part.state, Failed) and part.state.error == INTERRUPTED_CALL


def _reads(tool: Tool | None) -> bool:
    """Whether calls of a tool change no file; False for a tool that no longer exists."""
    return tool is not None and tool.effect == "reads"


def said_of(files: Restored, root: Path) -> str:
    """What was not undone, as a text for people, "" when everything was."""
    lines = [f"{shown_path(left.path, root)}: {reason_of(left, root)}" for left in files.left]
    if len(lines) > MOST_NAMED:
        lines[MOST_NAMED:] = [f"and {len(lines) - MOST_NAMED} more"]
    count = "1 file" if len(files.left) == 1 else f"{len(files.left)} files"
    text = f"not put back, {count}: {'; '.join(lines)}" if lines else ""
    return "; ".join(each for each in (files.unknown, text) if each)


def reason_of(left: Left, root: Path) -> str:
    """Why a file was not restored, and how to restore it where that is possible."""
    folder = shown_path(_repository(left.path, root), root)
    return _REASONS[left.reason].format(folder=folder, file=shown_path(left.path, root))


def shown_path(path: Path, root: Path) -> str:
    """The path in the form that people read."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _repository(path: Path, root: Path) -> Path:
    folders = (path, *path.parents)
    inside = (each for each in folders if each != root and each.is_relative_to(root))
    return next((each for each in inside if (each / ".git").exists()), path)


def _taken_back(turns: Sequence[Turn], here: Revert | None, there: Revert | None) -> list[Part]:
    """The parts that this revert removes, and the one before it did not."""
    if there is None:
        return []
    known = {part.id for part in behind(turns, here)}
    return [part for part in behind(turns, there) if part.id not in known]
