"""The search for the step of a session that broke a command, in copies of the worktree."""

import asyncio
import shutil
import stat
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from pegboard import App, InvalidInputError
from pegboard.plugins import shield
from pegboard.processes import ProgramResult, run_program
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import PatchPart
from pegboard.snapshots import RestoreWay
from pegboard.unstable import total

SKIPPED = 125
"""The exit code of a state that cannot be tested, as for `git bisect run`."""
_PRINTED_BYTES = 1 << 20
_RUN = 'exec "$@" >"$0" 2>&1'

Outcome = Literal["passes", "fails", "cannot be tested"]
Run = Callable[[int], Awaitable[Outcome]]


class ChangingStep(msgspec.Struct, frozen=True):
    """A step that changed files, with its turn and patches."""

    turn: Turn
    patches: tuple[PatchPart, ...]


class BreakingRange(msgspec.Struct, frozen=True):
    """The result of the search: the command passes in state `passing` and fails in state `failing`.

    State 0 is before the first step, and state N is after step N. The two states are neighbours,
    except where the states between them cannot be tested. `passing` is -1 if the command passes in
    no state. `failing` is the number of steps plus 1 if the command fails in no state.
    """

    passing: int
    failing: int


async def search(steps: int, run: Run) -> BreakingRange:
    """Find the two states between which the command broke, by binary search over `steps` steps."""
    passing, failing = -1, steps + 1
    untestable: set[int] = set()
    while candidates := set(range(passing + 1, failing)) - untestable:
        middle = (passing + failing) // 2
        state = min(candidates, key=lambda each: (abs(each - middle), each))
        match await run(state):
            case "passes":
                passing = state
            case "fails":
                failing = state
            case _:
                untestable.add(state)
    return BreakingRange(passing, failing)


def changing_steps(turns: Sequence[Turn]) -> tuple[ChangingStep, ...]:
    """Return the steps that changed files, in order."""
    found = []
    for turn in turns:
        patches = tuple(part for part in turn.parts if isinstance(part, PatchPart) and part.files)
        if patches and isinstance(turn.info, AssistantMessage):
            found.append(ChangingStep(turn, patches))
    return tuple(found)


def states_after(steps: Sequence[ChangingStep], count: int) -> dict[Path, str]:
    """Return the states after the first `count` steps of all files that any step changed.

    Each path maps to the id of a snapshot that contains the file in that state.
    """
    behind = total(patch for step in steps[count:] for patch in step.patches)
    before = total(patch for step in steps[:count] for patch in step.patches)
    states = {path: way.before for path, way in behind.items()}
    return states | {path: way.after for path, way in before.items()}


async def changed_between(app: App, steps: Sequence[ChangingStep], count: int) -> dict[Path, str]:
    """Return the files of step `count` that were changed between the previous step and this step.

    Each path maps to the id of the snapshot before step `count`.
    """
    assert app.snapshots is not None
    earlier = states_after(steps, count - 1)
    between = {
        path: RestoreWay(before=earlier[path], after=way.before)
        for path, way in total(steps[count - 1].patches).items()
        if earlier[path] != way.before
    }
    diffs = await app.snapshots.diff(between) if between else ()
    changed = {app.workspace.worktree / diff.file for diff in diffs}
    return {path: way.after for path, way in between.items() if path in changed}


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A command to run on copies of the worktree; `limit_s` is the time limit of one run."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    limit_s: float


class TrialRun(msgspec.Struct, frozen=True):
    """The result of a trial run: its outcome and reason, and the end of the command's output."""

    outcome: Outcome
    reason: str
    printed: str


async def try_state(app: App, trial: Trial, states: Mapping[Path, str]) -> TrialRun:
    """Run the command in a new copy of the worktree in which files have the given states.

    The copy has no `.git`. It is removed at the end, also when the call is cancelled.
    """
    snapshots, workspace = app.snapshots, app.workspace
    assert snapshots is not None
    with tempfile.TemporaryDirectory(prefix="pegboard-bisect-") as scratch:
        root = Path(scratch, workspace.worktree.name)
        await _copy(workspace.worktree, root)
        lost = await snapshots.copy_out(states, root)
        if lost:
            are = "1 file is" if len(lost) == 1 else f"{len(lost)} files are"
            return TrialRun("cannot be tested", f"{are} no longer stored", "")
        folder = root / workspace.directory.relative_to(workspace.worktree)
        folder.mkdir(parents=True, exist_ok=True)
        log = root.parent / "output"
        done = await run_program(
            ("/bin/sh", "-c", _RUN, str(log), *trial.command),
            cwd=folder,
            env={**trial.env, "GIT_CEILING_DIRECTORIES": str(root.parent)},
            timeout_s=trial.limit_s,
            limit_bytes=_PRINTED_BYTES,
        )
        return _judge(done, trial, _end_of(log))


def _judge(done: ProgramResult, trial: Trial, printed: str) -> TrialRun:
    if done.timed_out:
        return TrialRun("fails", f"no end within {trial.limit_s:g} s", printed)
    reason = f"exit code {done.exit_code}"
    match done.exit_code:
        case 0:
            return TrialRun("passes", reason, printed)
        case code if code == SKIPPED:
            return TrialRun("cannot be tested", reason, printed)
        case _:
            return TrialRun("fails", reason, printed)


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _PRINTED_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


async def _copy(worktree: Path, root: Path) -> None:
    """Copy a worktree, except `.git` and special files; stop early when cancelled.

    :raises InvalidInputError: when a file cannot be read, or the disk is full.
    """
    stopped = threading.Event()
    copying = asyncio.create_task(asyncio.to_thread(_copy_tree, worktree, root, stopped))
    try:
        await asyncio.wait({copying})
    except asyncio.CancelledError:
        stopped.set()
        await shield(asyncio.wait({copying}))
        raise
    try:
        copying.result()
    except OSError as error:
        raise InvalidInputError(f"cannot copy {worktree}: {error}") from error


def _copy_tree(worktree: Path, root: Path, stopped: threading.Event) -> None:
    def left_out(folder: str, names: list[str]) -> set[str]:
        if stopped.is_set():
            return set(names)
        return {name for name in names if name == ".git" or _is_special(Path(folder, name))}

    shutil.copytree(worktree, root, symlinks=True, ignore=left_out)


def _is_special(path: Path) -> bool:
    mode = path.lstat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
