"""`pegboard batch`: run many jobs, continue them, show their status, and write their results."""

import asyncio
import fcntl
import json
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from pegboard.cli import Exit, Group, run_async
from pegboard.errors import InvalidInputError
from pegboard_fleet.batch import begin
from pegboard_fleet.batch import resume as go_on
from pegboard_fleet.jobs import read_jobs
from pegboard_fleet.journal import JOURNAL, PID, Status
from pegboard_fleet.progress import Progress, summary
from pegboard_fleet.results import NAMES, Form, write_results
from pegboard_fleet.settings import exit_of, read_settings, resume_options, settings_options
from pegboard_fleet.state import BatchState

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group(cls=Group)
def batch() -> None:
    """Run one agent over many jobs, with one budget, and continue after an interruption.

    Exit codes: 0 all done, 1 some failed, 3 the budget is spent, 4 a provider or the machine
    failed, 130 interrupted.
    """


@batch.command()
@click.argument("jobs", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", type=_FOLDER, required=True, help="The folder of the batch.")
@click.option("--concurrency", type=click.IntRange(1, 1000), default=4, show_default=True)
@settings_options
@click.pass_context
def run(ctx: click.Context, /, jobs: Path, out: Path, **settings: Any) -> None:  # noqa: ANN401 - click's own types
    """Run the jobs of the file JOBS, which has one JSON object per line.

    A line has `id` and `prompt` (or `template` with `vars`), and may have `repo`, `commit`,
    `setup`, `check`, `labels`, `meta` and `time_limit_s`. Without --auto, each permission
    request is denied.
    """
    chosen = read_settings("pegboard batch run", settings)
    found = read_jobs(jobs)
    progress = Progress(sys.stderr)
    ctx.exit(_ended(out, begin(out, found, chosen, progress), progress))


@batch.command()
@click.argument("out", type=_FOLDER)
@resume_options
@click.pass_context
def resume(
    ctx: click.Context, out: Path, budget_usd: float | None, retry: frozenset[Status]
) -> None:
    """Continue the batch of the folder OUT.

    Interrupted attempts continue where they stopped. The model is informed of a tool call that
    was interrupted, and the call is not repeated automatically.
    """
    progress = Progress(sys.stderr)
    working = go_on(out, progress, budget_usd=budget_usd, retry=retry)
    ctx.exit(_ended(out, working, progress))


@batch.command()
@click.argument("out", type=_FOLDER)
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
def status(out: Path, style: str) -> None:
    """Show the status of the batch of the folder OUT."""
    state, runs = BatchState.of(out), _pid(out) is not None
    if style == "json":
        facts = {
            "attempts": len(state.attempts),
            "open": len(state.open),
            "ended": dict(state.counts),
            "paid_usd": state.paid_usd,
            "held_usd": state.lost_usd,
            "budget_usd": state.settings.budget_usd,
            "runs": runs,
        }
        click.echo(json.dumps(facts))
        return
    rest = "it runs" if runs else "it rests" if state.open else "it has ended"
    click.echo(f"{summary(state)} · {rest}")


@batch.command()
@click.argument("out", type=_FOLDER)
def stop(out: Path) -> None:
    """Stop the batch of the folder OUT; `pegboard batch resume` continues it."""
    if (pid := _pid(out)) is None:
        raise InvalidInputError(f"no batch runs in {out}")
    os.kill(pid, signal.SIGTERM)
    click.echo(f"stopping process {pid}")


@batch.command()
@click.argument("out", type=_FOLDER)
@click.option("--format", "form", type=click.Choice(list(NAMES)), default="jsonl")
def results(out: Path, form: Form) -> None:
    """Write the results of the batch of the folder OUT, and print the file's name.

    `jsonl` has one JSON object per line, `preds` the predictions for SWE-bench, `parquet` a table
    for analysis, and `atif` is a folder with a trajectory for each attempt.
    """
    click.echo(run_async(write_results(out, BatchState.of(out), form)))


def _ended(out: Path, working: Coroutine[Any, Any, BatchState], progress: Progress) -> int:
    """Run a batch, and return the exit code for the command line."""
    try:
        state = run_async(_stoppable(working))
    finally:
        progress.close()
    if state is None:
        click.echo(f"interrupted; `pegboard batch resume {out}` goes on", err=True)
        return Exit.INTERRUPTED
    click.echo(f"{summary(state)}; the results are in {out / NAMES['jsonl']}", err=True)
    return exit_of(state)


async def _stoppable(working: Coroutine[Any, Any, BatchState]) -> BatchState | None:
    """Return the batch's state when the batch ends, or None if a signal stopped the batch."""
    task = asyncio.create_task(working, name="batch")
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return None


def _pid(out: Path) -> int | None:
    """Return the id of the process that runs the batch in `out`, or None if no process does.

    :raises InvalidInputError: when the folder has no batch.
    """
    try:
        journal = (out / JOURNAL).open("rb")
    except OSError as error:
        raise InvalidInputError(f"{out} has no batch: {error.strerror or error}") from error
    with journal:
        try:
            fcntl.flock(journal, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            with suppress(OSError, ValueError):
                return int((out / PID).read_text())
    return None
