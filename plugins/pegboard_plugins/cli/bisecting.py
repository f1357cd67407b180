"""`pegboard session bisect`: the step of a session that broke a command."""

import sys
from collections.abc import Iterator, Sequence
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pegboard import InvalidInputError
from pegboard.cli import open_app, run_async
from pegboard.display import escape_controls
from pegboard.schema.part import TextPart, ToolPart
from pegboard.unstable import total
from pegboard_plugins.cli.bisection import (
    Trial,
    changed_between,
    changing_steps,
    search,
    states_after,
    try_state,
)
from pegboard_plugins.cli.completing import live
from pegboard_plugins.cli.foundsession import find_session
from pegboard_plugins.cli.render import Line, open_screen, tool_head, whole_diff
from pegboard_plugins.shared.frontend import require_folder

if TYPE_CHECKING:
    from pegboard import App
    from pegboard.schema.message import Turn
    from pegboard.schema.session import FileDiff
    from pegboard_plugins.cli.bisection import BreakingRange, ChangingStep, Outcome, TrialRun

_LIMIT_S = 600.0
_PRINTED_LINES = 20


@click.command()
@click.argument("session_id", metavar="ID", shell_complete=live("session"))
@click.argument("command", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--timeout",
    "limit_s",
    type=click.FloatRange(min=0, min_open=True),
    default=_LIMIT_S,
    show_default=True,
    metavar="SECONDS",
    help="The limit of one run; a run that exceeds it fails.",
)
@click.pass_obj
def bisect(directory: Path, session_id: str, command: tuple[str, ...], *, limit_s: float) -> int:
    """Find the step of a session that broke COMMAND.

    COMMAND runs in copies of the worktree, with the files of the session as they were after a
    step, and without API keys in its environment. Exit code 0 means that the step is good, 125
    skips the step, and any other exit code means that it is bad. Write `--` before COMMAND. The
    exit code is 1 if no step is found.
    """
    return run_async(_bisected(directory, session_id, command, limit_s))


async def _bisected(
    directory: Path, session_id: str, command: tuple[str, ...], limit_s: float
) -> int:

    async with open_app(directory) as app:
        session = await find_session(app, session_id)
        if not Path(session.directory).is_relative_to(app.workspace.worktree):
            require_folder(session, app.workspace.directory)
        turns = await app.list_turns(session.id)
        steps = changing_steps(turns)
        if not steps or app.snapshots is None:
            reason = "its steps changed no file" if app.snapshots else "snapshots are turned off"
            raise InvalidInputError(
                f"nothing to search in {session.id}: {reason}; `pegboard session list` has others"
            )
        trial = Trial(command=command, env=await app.user_env(), limit_s=limit_s)
        return await _Bisection(app, steps, trial).report(turns)


class _Bisection:
    """The search for the step that broke a command; each trial run is printed to standard error."""

    def __init__(self, app: "App", steps: "Sequence[ChangingStep]", trial: "Trial") -> None:
        self._app = app
        self._steps = steps
        self._trial = trial
        self._runs: dict[int, TrialRun] = {}

    async def report(self, turns: "Sequence[Turn]") -> int:
        """Search for the step, print it or why there is none, and return the exit code."""
        last = len(self._steps)
        found = await search(last, self._outcome)
        if found.passing < 0:
            return _ended("it does not pass before the first step", self._runs[0])
        if found.failing > last:
            return _ended("it does not fail after the last step", self._runs[last])
        if found.failing - found.passing > 1:
            click.echo(
                f"one of the steps {found.passing + 1} to {found.failing} broke it; the states "
                "between them cannot be tested",
                err=True,
            )
            return 1
        if between := await changed_between(self._app, self._steps, found.failing):
            states = states_after(self._steps, found.passing) | between
            if (await self._tried(f"before step {found.failing}", states)).outcome == "fails":
                names = ", ".join(str(path) for path in between)
                click.echo(
                    f"no step broke it: between the steps {found.passing} and {found.failing} "
                    f"something else changed {names}",
                    err=True,
                )
                return 1
        await self._show(found, turns)
        return 0

    async def _outcome(self, state: int) -> "Outcome":

        name = f"after step {state} of {len(self._steps)}" if state else "before the first step"
        self._runs[state] = await self._tried(name, states_after(self._steps, state))
        return self._runs[state].outcome

    async def _tried(self, name: str, states: "dict[Path, str]") -> "TrialRun":

        done = await try_state(self._app, self._trial, states)
        click.echo(f"{name}: {done.outcome} ({done.reason})", err=True)
        return done

    async def _show(self, found: "BreakingRange", turns: "Sequence[Turn]") -> None:

        step = self._steps[found.failing - 1]
        assert self._app.snapshots is not None
        diffs = await self._app.snapshots.diff(total(step.patches))
        screen = open_screen(sys.stdout, sys.stdout, environ)
        for line in _lines(step, turns, diffs, self._app.workspace.directory):
            screen.line(line)
        screen.close()
        click.echo(f"step {found.failing} of {len(self._steps)} broke it", err=True)


def _lines(
    step: "ChangingStep", turns: "Sequence[Turn]", diffs: "Sequence[FileDiff]", directory: Path
) -> "Iterator[Line]":
    """Yield lines that describe the step: its message id, prompt, tool calls and file changes."""
    prompt = next((each.parts for each in turns if each.info.id == step.turn.prompt_id), ())
    typed = [part.text for part in prompt if isinstance(part, TextPart) and not part.synthetic]
    yield Line(head="message", text=step.turn.info.id)
    yield Line(head="prompt", text=" ".join(" ".join(typed).split()))
    for part in step.turn.parts:
        if isinstance(part, ToolPart):
            yield tool_head(part, directory)
    for diff in diffs:
        yield Line(head=diff.status or "modified", text=diff.file, style="hunk")
        yield from whole_diff(diff.patch, indent=1)


def _ended(text: str, run: "TrialRun") -> int:
    """Print why no step can be found, with the output of the trial run; return the exit code 1."""
    printed = escape_controls(run.printed).rstrip("\n").split("\n")[-_PRINTED_LINES:]
    click.echo("\n".join(each for each in printed if each), err=True)
    click.echo(
        f"nothing to find: {text} ({run.reason}); give a command that passes before the session "
        "and fails after it",
        err=True,
    )
    return 1


COMMANDS = (bisect,)
