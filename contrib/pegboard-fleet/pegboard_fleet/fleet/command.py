"""`pegboard fleet`: workers on many machines that run the jobs of batches from one database."""

import asyncio
import os
import re
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
import msgspec

from pegboard.cli import Exit, Group, run_async
from pegboard.errors import ConfigError, NotFoundError
from pegboard_fleet.fleet.options import VARIABLE, read_options
from pegboard_fleet.jobs import Job, read_jobs
from pegboard_fleet.journal import Settings, Status
from pegboard_fleet.progress import Progress, summary
from pegboard_fleet.results import NAMES, Form, write_results
from pegboard_fleet.settings import exit_of, read_settings, resume_options, settings_options

if TYPE_CHECKING:
    from pegboard_fleet.fleet.database import FleetDatabase

LOST = 75
"""The exit code of a worker that was taken for dead (EX_TEMPFAIL): start it again."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_POLL_S = 1.0
_WAY = "pip install 'pegboard-fleet[postgres]' installs it"


class _Name(click.ParamType[str]):
    """The click type for the name of a pool or a batch."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; fail if the name is not valid."""
        if not _NAME.fullmatch(value):
            self.fail(f"{value!r} is not 1 to 64 letters, digits, dots, - or _", param, ctx)
        return value


_POOL = click.option(
    "--pool", type=_Name(), default="default", show_default=True, help="The workers to ask."
)
_REMOTE = click.option(
    "--remote",
    required=True,
    metavar="REPOSITORY",
    help="A bare git repository that all workers can push to, for the folders of sessions.",
)


@click.group(cls=Group)
@click.pass_context
def fleet(ctx: click.Context) -> None:
    """Run batches on workers of many machines, with one PostgreSQL database.

    PEGBOARD_DATABASE is the database's address; alternatively, the setting `database_file` names
    a file with the address. `pegboard batch` runs batches on this machine alone.
    """
    options = run_async(read_options(os.environ))
    if VARIABLE not in os.environ and (url := options.url()):
        os.environ[VARIABLE] = url
    ctx.default_map = options.defaults()


@fleet.command()
@click.option("--role", metavar="ROLE", help="The role of the workers, if it is not this one.")
def init(role: str | None) -> None:
    """Create the tables of a fleet, or bring them up to date.

    Run it as the role that owns the tables, once for each role of workers.
    """
    run_async(_init(role))


async def _init(role: str | None) -> None:
    async with _database(checked=False) as (database, url):
        from pegboard_fleet.fleet.queue import Queue, queue_schema  # DBOS is large, and an extra

        await database.migrate()
        schema, own = await database.schema()
        queue = Queue(url, queue_schema(schema, role or own))
        try:
            await queue.migrate(role or own)
        finally:
            await queue.aclose()
    click.echo(f"the fleet of {role or own} is ready")


@fleet.command()
@click.argument("jobs", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--batch", "name", type=_Name(), help="The name of the batch; by default a new one.")
@_POOL
@settings_options
@click.option(
    "--ask",
    is_flag=True,
    help="Let permission requests wait for clients of the fleet's servers; see `worker --secret`.",
)
def submit(jobs: Path, name: str | None, pool: str, **settings: Any) -> None:  # noqa: ANN401 - click's own types
    """Queue the jobs of the file JOBS for a pool of workers, and print the batch's name.

    The file has the format of `pegboard batch run`. If the command was interrupted, repeat it with
    the name of the batch: it queues the jobs that are missing.
    """
    chosen = read_settings("pegboard fleet submit", settings)
    found = read_jobs(jobs)
    click.echo(run_async(_submit(found, name or secrets.token_hex(6), pool, chosen)))


async def _submit(jobs: tuple[Job, ...], name: str, pool: str, settings: Settings) -> str:
    async with _database() as (database, url):
        from pegboard_fleet.fleet.jobs import put_batch, queued_of
        from pegboard_fleet.fleet.queue import Queue

        await put_batch(database, name, pool, settings, jobs)
        queue = await Queue.of(database, url)
        try:
            await queue.put(pool, await queued_of(database, name))
        finally:
            await queue.aclose()
    return name


@fleet.command()
@_POOL
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=4,
    show_default=True,
    help="Jobs at once; the newest worker of a pool sets it for all of them.",
)
@_REMOTE
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("fleet-work"),
    show_default=True,
    help="The folder in which jobs work.",
)
@click.option(
    "--secret",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Let clients of `pegboard serve --fleet FILE` work with the sessions of jobs, too.",
)
@click.option(
    "--hostname",
    default="127.0.0.1",
    show_default=True,
    help="With --secret, the address of this machine for the servers.",
)
def worker(  # noqa: PLR0913 - the options of a command
    *, pool: str, concurrency: int, remote: str, work: Path, secret: Path | None, hostname: str
) -> None:
    """Run jobs of a pool, until the worker is drained or stopped.

    Other workers continue the jobs of a stopped worker. Exit codes: 0 drained or stopped, 1 the
    database was unreachable, 75 the fleet declared the worker dead, so start it again.
    """
    place = None if secret is None else (secret, hostname)
    run_async(_worker(pool, concurrency, remote, work.absolute(), place))


async def _worker(
    pool: str, concurrency: int, remote: str, work: Path, place: tuple[Path, str] | None
) -> NoReturn:
    async with AsyncExitStack() as stack:
        database, url = await stack.enter_async_context(_database())
        from pegboard_fleet.fleet.queue import Queue
        from pegboard_fleet.fleet.storage import SharedDatabase
        from pegboard_fleet.fleet.worker import Worker, WorkerSettings

        shared = SharedDatabase()
        storage = await shared.open(url)
        server = None
        if place is not None:
            from pegboard_plugins.server.jobserver import job_server  # 0.5 s that others save

            server = await stack.enter_async_context(job_server(*place, os.environ))
        settings = WorkerSettings(
            url=url, pool=pool, concurrency=concurrency, remote=remote, root=work, server=server
        )
        running = Worker(settings, database, await Queue.of(database, url), shared)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, running.stop)
        ending = await running.run()
        if ending != "failed":
            await storage.end()
    sys.stdout.flush()
    sys.stderr.flush()
    # What the queue and a database that is away still have of this process must not end in it:
    # others have its jobs.
    os._exit({"lost": LOST, "failed": Exit.FAILED}.get(ending, Exit.DONE))


@fleet.command()
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
def status(style: str) -> None:
    """Show the workers and the batches."""

    async def found() -> list[str]:
        async with _database() as (database, _):
            from pegboard_fleet.fleet.status import lines_of, status_of

            stands = await status_of(database)
            return lines_of(stands) if style == "text" else [msgspec.json.encode(stands).decode()]

    for line in run_async(found()):
        click.echo(line)


@fleet.command()
@click.argument("worker_id", metavar="WORKER")
def drain(worker_id: str) -> None:
    """Let a worker finish its running jobs, take no more, and end.

    `pegboard fleet status` shows the names of workers. To let other workers continue the running
    jobs instead, send the process SIGTERM.
    """

    async def ask() -> None:
        async with _database() as (database, _):
            from pegboard_fleet.fleet.watch import drain_worker

            if not await drain_worker(database, worker_id):
                raise NotFoundError("worker", worker_id)

    run_async(ask())
    click.echo(f"{worker_id} takes no more jobs")


@fleet.command()
@click.argument("name", metavar="BATCH")
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
def stop(name: str, jobs: tuple[str, ...]) -> None:
    """Stop a batch, or some of its jobs, on all machines.

    Queued jobs do not start, and the workers end the sessions of running jobs.
    `pegboard fleet resume` continues the stopped jobs.
    """

    async def stopped() -> int:
        async with _database() as (database, _):
            from pegboard_fleet.fleet.jobs import stop_jobs

            return await stop_jobs(database, name, jobs)

    click.echo(f"stopped {run_async(stopped())} attempts of {name}")


@fleet.command()
@click.argument("name", metavar="BATCH")
@resume_options
def resume(name: str, budget_usd: float | None, retry: frozenset[Status]) -> None:
    """Continue the stopped jobs of a batch, and repeat jobs that ended with a status in --retry.

    A repeated job has a new session. A higher budget repeats the jobs that the old budget ended.
    """

    async def ask() -> int:
        async with _database() as (database, url):
            from pegboard_fleet.fleet.jobs import go_on, queued_of, state_of
            from pegboard_fleet.fleet.queue import Queue

            await go_on(database, name, budget_usd=budget_usd, retry=retry)
            _, pool = await state_of(database, name)
            keys = await queued_of(database, name)
            queue = await Queue.of(database, url)
            try:
                await queue.put(pool, keys)
            finally:
                await queue.aclose()
            return len(keys)

    click.echo(f"{run_async(ask())} attempts of {name} wait for a worker")


@fleet.command()
@click.argument("name", metavar="BATCH")
@click.pass_context
def wait(ctx: click.Context, name: str) -> None:
    """Wait for the end of a batch, with a line for each attempt.

    The exit codes are those of `pegboard batch`; 130 means that the batch was stopped.
    """

    async def ended() -> int:
        progress = Progress(sys.stderr)
        known: set[tuple[str, int]] = set()
        async with _database() as (database, _):
            from pegboard_fleet.fleet.jobs import is_active, state_of

            while True:  # until a signal, or the end of the batch
                active = await is_active(database, name)
                state, _pool = await state_of(database, name)
                for result in state.results:
                    if (result.id, result.attempt) not in known:
                        known.add((result.id, result.attempt))
                        progress.end(state, result)
                if not active:
                    progress.close()
                    click.echo(summary(state), err=True)
                    if not state.open:
                        return exit_of(state)
                    click.echo(f"stopped; `pegboard fleet resume {name}` goes on", err=True)
                    return Exit.INTERRUPTED
                await asyncio.sleep(_POLL_S)

    ctx.exit(run_async(ended()))


@fleet.command()
@click.argument("name", metavar="BATCH")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="A folder."
)
@click.option("--format", "form", type=click.Choice(list(NAMES)), default="jsonl")
def results(name: str, out: Path, form: Form) -> None:
    """Write the results of a batch into a folder, and print the file's name.

    The formats are those of `pegboard batch results`.
    """

    async def written() -> Path:
        async with _database() as (database, _):
            from pegboard_fleet.fleet.jobs import state_of

            state, _pool = await state_of(database, name)
        await asyncio.to_thread(out.mkdir, parents=True, exist_ok=True)
        return await write_results(out, state, form)

    click.echo(run_async(written()))


@fleet.command()
@_REMOTE
@click.pass_context
def doctor(ctx: click.Context, remote: str) -> None:
    """Report each problem of the fleet, with its fix.

    Run it where a worker runs, as the worker's user. The exit code is 1 if there is a problem.
    """

    async def found() -> list[str]:
        url = _url()
        from pegboard_fleet.fleet.doctor import problems_of

        return [each async for each in problems_of(url, remote)]

    problems = run_async(found())
    for each in problems:
        click.echo(f"- {each}")
    click.echo(f"{len(problems)} problems" if problems else "the fleet is ready")
    ctx.exit(Exit.FAILED if problems else Exit.DONE)


def _url() -> str:
    """Return the address of the fleet's database.

    :raises ConfigError: when the address is not valid, or the extra `postgres` is missing.
    """
    try:
        import dbos  # noqa: F401 - large, and an extra

        from pegboard_fleet.fleet.database import database_url
    except ImportError as error:
        raise ConfigError(f"a fleet needs {error.name}: {_WAY}") from error
    return database_url(os.environ)


@asynccontextmanager
async def _database(*, checked: bool = True) -> "AsyncIterator[tuple[FleetDatabase, str]]":
    """Open the fleet's database; yield the database and its address.

    :raises StorageError: when its tables are not those of this version.
    """
    url = _url()
    from pegboard_fleet.fleet.database import FleetDatabase

    async with FleetDatabase(url) as database:
        if checked:
            await database.require_tables()
        yield database, url
