"""Revert: restore a session and its files to an earlier point, or undo that.

A file is restored only if the session changed it and nothing changed it since. The result and an
event name each file that was not restored, and why.
"""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from pegboard import App, Tool
from pegboard.errors import NotFoundError
from pegboard.schema.event import SessionDiffed, SessionUpdated, SessionWarned
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.part import Failed, Part, PatchPart, Staged, StepStartPart, TextPart, ToolPart
from pegboard.schema.session import FileDiff, Revert, Session
from pegboard.snapshots import Left, Replaced, Restored, RestoreWay, StagedWay
from pegboard.storage import ChangeSession, Fence, PublishEvent
from pegboard.unstable import (
    INTERRUPTED_CALLS,
    bounded,
    name_of,
    stored_name,
    summary_of,
    total,
    total_by_name,
)


class Reverted(msgspec.Struct, frozen=True, kw_only=True):
    """The session after a revert, and the results for its files.

    `warning` names the files that were not restored, with the reasons, and the copies of files that
    the user may have edited. It is "" if there are no such files.
    """

    session: Session
    files: Restored
    warning: str = ""


async def reverted(
    app: App, session_id: str, message_id: str, part_id: str | None = None
) -> Reverted:
    """Revert the session and its files to before a message, or before a part of a message.

    The messages stay until the next prompt. A second call moves the point, earlier or later. A call
    for the same point tries the unrestored files again.

    :raises NotFoundError: when the session has no such message or part; nothing is changed.
    :raises SessionBusyError: while the session runs.
    """
    async with app.hold_session(session_id) as fence:
        session = await app.storage.session(session_id)
        turns = await app.storage.turns(session_id)
        point = _point(turns, message_id, part_id)
        return await _moved(app, session, turns, point, fence)


async def unreverted(app: App, session_id: str) -> Reverted:
    """Undo the revert of the session and its files.

    :raises NotFoundError: when the session does not exist.
    :raises SessionBusyError: while the session runs.
    """
    async with app.hold_session(session_id) as fence:
        session = await app.storage.session(session_id)
        if session.revert is None:
            return Reverted(session=session, files=Restored())
        turns = await app.storage.turns(session_id)
        return await _moved(app, session, turns, None, fence)


async def session_diff(
    app: App, session_id: str, *, message_id: str | None = None
) -> tuple[FileDiff, ...]:
    """Return the changes of files by the session's completed steps, up to the point of a revert.

    With the id of a user's message, only the changes by its answers are returned.

    :raises NotFoundError: when the session, or the message in it, does not exist.
    """
    session = await app.storage.session(session_id)
    turns: Sequence[Turn] = await app.list_turns(session_id, files=True)
    if app.snapshots is None:
        return ()
    if message_id is not None:
        turns = _exchange(turns, message_id)
    before, _ = split(turns, session.revert)
    return await app.snapshots.diff(total(before))


async def _moved(
    app: App, session: Session, turns: Sequence[Turn], point: Revert | None, fence: Fence
) -> Reverted:
    files = Restored()
    diffs: tuple[FileDiff, ...] = ()
    snapshots = app.snapshots
    here = session.revert
    if here and point and (here.message_id, here.part_id) == (point.message_id, point.part_id):
        here = None  # what could not be put back is tried again; all else is as it is to be
    unknown = unseen(app, turns, here=here, there=point)
    unkept = left_by(turns, here=here, there=point)
    if snapshots is not None:
        tree = await snapshots.track(fresh=True)
        changed = between(turns, here=here, there=point)
        if point is not None and tree is not None:  # a path that is in no tree: an empty folder
            empty = [each.path for each in unkept if each.reason == "empty"]
            changed |= dict.fromkeys(empty, RestoreWay(before=tree, after=tree))
        files = await snapshots.restore(changed)
        ways = staged_between(turns, here=here, there=point)
        files = replace(files, left=(*files.left, *await snapshots.restage(ways)))
        before, behind = split(turns, point)
        diffs = bounded(await snapshots.diff(total(before)))
        undone = bounded(await snapshots.diff(total(behind)))
        if point is not None:
            kept = tree if session.revert is None else session.revert.snapshot
            point = replace(point, snapshot=kept, diff="".join(diff.patch for diff in undone))
    doubtful = _by_commands(app, turns, here=here, there=point)
    copies = _among(files.replaced, doubtful)
    unkept = tuple(
        each for each in unkept if each.reason != "empty" or (point and not each.path.is_dir())
    )
    files = replace(files, left=(*files.left, *unkept), unknown=unknown, replaced=copies)
    change = ChangeSession(
        session_id=session.id,
        revert=point,
        summary=summary_of(diffs),
        updated=time.time_ns() // 10**6,
    )
    diffed = PublishEvent(SessionDiffed(session_id=session.id, diff=diffs))
    text = said_of(files, app.workspace.worktree)
    warned = [PublishEvent(SessionWarned(session_id=session.id, message=text))] if text else []
    events = await app.storage.commit(change, diffed, *warned, fence=fence)
    updates = (each.properties for each in events)
    session = next(each.info for each in updates if isinstance(each, SessionUpdated))
    return Reverted(session=session, files=files, warning=text)


def _point(turns: Sequence[Turn], message_id: str, part_id: str | None) -> Revert:
    """Return the revert point: before a message's prompt, or before a part of the message."""
    prompt: str | None = None
    for turn in turns:
        if isinstance(turn.info, UserMessage):
            prompt = turn.info.id
        if turn.info.id != message_id:
            continue
        if part_id is None:
            return Revert(message_id=prompt or message_id)
        seen = False
        for part in turn.parts:
            if part.id == part_id:
                whole = Revert(message_id=prompt or message_id)
                return Revert(message_id=message_id, part_id=part_id) if seen else whole
            seen = seen or isinstance(part, TextPart | ToolPart)
        raise NotFoundError("part", part_id)
    raise NotFoundError("message", message_id)


def _exchange(turns: Sequence[Turn], message_id: str) -> tuple[Turn, ...]:
    """Return the turn of a user's message and the turns that answer this message."""
    found = tuple(
        turn
        for turn in turns
        if message_id in (turn.info.id, getattr(turn.info, "parent_id", None))
    )
    if not any(turn.info.id == message_id for turn in found):
        raise NotFoundError("message", message_id)
    return found


MOST_NAMED = 20
"""The maximum number of files that a warning names; the result of `App.revert` has all."""
_OFF = "snapshots are turned off (`snapshot = false`)"
_NOBODY = "no plugin keeps snapshots"
_NONE = "no snapshot was taken, or the program ended before"
_GONE = "it was a repository of its own and is gone: no copy was made"
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
    "empty": "an empty folder, of which git has no copy: `mkdir -p {file}` makes it again",
    "submodule": "in a submodule: `git -C {folder} status` shows what changed there",
}


def left_by(
    turns: Sequence[Turn], *, here: Revert | None, there: Revert | None
) -> tuple[Left, ...]:
    """Return the files that a revert from `here` to `there` cannot restore, with the reasons."""
    found: dict[str, Left] = {}
    for part in _taken_back(turns, here, there):
        if isinstance(part, PatchPart):
            for file, reason in part.left.items():
                found[file] = Left(path=Path(name_of(file)), reason=reason)
    return tuple(found.values())


def unseen(app: App, turns: Sequence[Turn], *, here: Revert | None, there: Revert | None) -> str:
    """Return why file changes of some reverted steps are unknown, or "" if all are known."""
    count, seen, wrote = 0, True, False
    for part in (*_taken_back(turns, here, there), None):
        if part is None or isinstance(part, StepStartPart):
            count += wrote and not seen
            seen, wrote = part is not None and part.snapshot is not None, False
        elif isinstance(part, ToolPart) and not _reads(app.tools.get(part.tool)):
            wrote = True
            seen = seen and not _was_killed(part)
    if not count:
        return ""
    snapshots = app.snapshots
    absent = _NOBODY if app.config.snapshot else _OFF
    why = absent if snapshots is None else snapshots.refused or _NONE
    steps = "1 step" if count == 1 else f"{count} steps"
    return f"files that {steps} changed are as they are: {why}"


def _by_commands(
    app: App, turns: Sequence[Turn], *, here: Revert | None, there: Revert | None
) -> set[Path]:
    """Return the files that changed while a tool ran whose arguments do not name all files.

    The user may have edited these files at the same time, as during a shell command.
    """
    patches: dict[str, list[PatchPart]] = {}
    doubtful = set()
    for part in _taken_back(turns, here, there):
        if isinstance(part, PatchPart):
            patches.setdefault(part.message_id, []).append(part)
        elif isinstance(part, ToolPart) and not _names_files(app.tools.get(part.tool)):
            doubtful.add(part.message_id)
    found = (patch for message_id in doubtful for patch in patches.get(message_id, ()))
    return {Path(name_of(file)) for patch in found for file in patch.files}


def _among(replaced: Replaced | None, files: set[Path]) -> Replaced | None:
    paths = tuple(path for path in replaced.paths if path in files) if replaced else ()
    return replace(replaced, paths=paths) if replaced and paths else None


def _names_files(tool: Tool | None) -> bool:
    """Return whether the arguments of a tool's calls name each file that the calls change."""
    return tool is not None and tool.effect in ("reads", "edits")


def _was_killed(part: ToolPart) -> bool:
    """Return whether a tool call was interrupted, so that its file changes are unknown."""
    return isinstance(part.state, Failed) and part.state.error in INTERRUPTED_CALLS


def _reads(tool: Tool | None) -> bool:
    """Return whether a tool's calls change no file; False for a tool that no longer exists."""
    return tool is not None and tool.effect == "reads"


def said_of(files: Restored, root: Path) -> str:
    """Return a warning about files that were not restored and copies of files; "" without any."""
    lines = [f"{shown_path(left.path, root)}: {reason_of(left, root)}" for left in files.left]
    count = "1 file" if len(files.left) == 1 else f"{len(files.left)} files"
    text = f"not put back, {count}: {'; '.join(_first(lines))}" if lines else ""
    return "; ".join(each for each in (files.unknown, text, copies_of(files, root)) if each)


def copies_of(files: Restored, root: Path) -> str:
    """Return a warning that names the files that the user may have edited, and their copies."""
    if files.replaced is None:
        return ""
    names = ", ".join(_first([shown_path(path, root) for path in files.replaced.paths]))
    return (
        f"changed while a command ran, so edits of yours may be undone too: {names};"
        f" as they were: {files.replaced.command}"
    )


def _first(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_NAMED
    return [*lines[:MOST_NAMED], f"and {more} more"] if more > 0 else lines


def reason_of(left: Left, root: Path) -> str:
    """Return why a file was not restored, and how to restore it if that is possible."""
    if left.reason in ("nested", "submodule") and not left.path.exists():
        return _GONE
    folder = shown_path(_repository(left.path, root), root)
    return _REASONS[left.reason].format(folder=folder, file=shown_path(left.path, root))


def shown_path(path: Path, root: Path) -> str:
    """Return the path relative to `root` if possible, in the form for users."""
    return stored_name(str(path.relative_to(root) if path.is_relative_to(root) else path))


def _repository(path: Path, root: Path) -> Path:
    folders = (path, *path.parents)
    inside = (each for each in folders if each != root and each.is_relative_to(root))
    return next((each for each in inside if (each / ".git").exists()), path)


def _taken_back(turns: Sequence[Turn], here: Revert | None, there: Revert | None) -> list[Part]:
    """Return the parts that a revert to `there` removes, except those that `here` removes."""
    if there is None:
        return []
    known = {part.id for part in behind(turns, here)}
    return [part for part in behind(turns, there) if part.id not in known]


def between(
    turns: Sequence[Turn], *, here: Revert | None, there: Revert | None
) -> dict[Path, RestoreWay]:
    """Return the files that differ between two revert points, with the git trees at both points.

    A point that is None stands for the end of the session.
    """
    places = [_states(*split(turns, point)) for point in (here, there)]
    return {
        Path(name_of(path)): RestoreWay(before=tree, after=places[1][path])
        for path, tree in places[0].items()
        if tree != places[1][path]
    }


def staged_between(
    turns: Sequence[Turn], *, here: Revert | None, there: Revert | None
) -> dict[str, StagedWay]:
    """Return the changes of git's index, by path, from the revert point `here` to `there`."""
    halves = [
        [[each for patch in half for each in patch.staged] for half in split(turns, point)]
        for point in (here, there)
    ]
    heads: dict[str, str] = {}
    for each in (*halves[0][0], *halves[0][1]):
        for file in each.files:
            heads.setdefault(file, each.head)
    places = [_states(*half) for half in halves]
    return {
        path: StagedWay(before=tree, after=places[1][path], head=heads[path])
        for path, tree in places[0].items()
        if tree != places[1][path]
    }


def _states(
    before: Iterable[PatchPart | Staged], behind: Iterable[PatchPart | Staged]
) -> dict[str, str]:
    """Return, for each path that the session has changed, the git tree with its state at a point.

    `before` and `behind` are the changes before and after the point.
    """
    trees = {path: way.after for path, way in total_by_name(before).items()}
    return trees | {path: way.before for path, way in total_by_name(behind).items()}


def split(
    turns: Iterable[Turn], point: Revert | None
) -> tuple[tuple[PatchPart, ...], tuple[PatchPart, ...]]:
    """Return the patches before a revert point and the patches after it, both in order."""
    turns = tuple(turns)
    count = sum(isinstance(part, PatchPart) for part in behind(turns, point))
    patches = [part for turn in turns for part in turn.parts if isinstance(part, PatchPart)]
    place = len(patches) - count
    return tuple(patches[:place]), tuple(patches[place:])


def behind(turns: Iterable[Turn], point: Revert | None) -> list[Part]:
    """Return the parts after a point of a session, in order."""
    if point is None:
        return []
    found: list[Part] = []
    is_behind = False
    for turn in turns:
        is_named = turn.info.id == point.message_id
        is_behind = is_behind or (is_named and point.part_id is None)
        for part in turn.parts:
            is_behind = is_behind or (is_named and part.id == point.part_id)
            if is_behind:
                found.append(part)
    return found
