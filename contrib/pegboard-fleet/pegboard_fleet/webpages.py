"""Pages of the web interface: the project's batches, and the fleet of the database."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import InvalidInputError, hookimpl
from pegboard.errors import StorageError
from pegboard.schema.model import format_usd
from pegboard_fleet.fleet.options import FleetOptions
from pegboard_fleet.journal import JOURNAL
from pegboard_fleet.state import Attempt, BatchState

if TYPE_CHECKING:
    from pegboard import App
    from pegboard.display import Block
    from pegboard_plugins.web import WebPage

DEPTH = ("*/", "*/*/")
"""The folders below the project's own in which batches are found."""
MOST_ROWS = 500
options = FleetOptions
_WORKERS = ("worker", "pool", "state", "running", "at most", "since")
_HEAD = ("job", "attempt", "outcome", "cost", "steps", "seconds", "error")


@hookimpl(optionalhook=True)
def web_pages() -> "tuple[WebPage, ...]":
    """Return the page of batches and, if sessions are in PostgreSQL, the page of the fleet."""
    from pegboard_plugins.web import WebPage  # only who asks for pages has the web view

    pages = (WebPage(name="batches", title="Batches", draw=batches),)
    if not os.environ.get("PEGBOARD_DATABASE", "").startswith(("postgresql://", "postgres://")):
        return pages
    return (*pages, WebPage(name="fleet", title="Fleet", draw=fleet))


async def batches(app: "App") -> "Sequence[Block]":
    """Return a block for each batch, the newest first."""
    return await asyncio.to_thread(lambda: tuple(_blocks(app.workspace.directory)))


async def fleet(app: "App") -> "Sequence[Block]":  # noqa: ARG001 - a page's
    """Return a block with the workers of the fleet, and a block per batch, the newest first."""
    from pegboard.display import Block
    from pegboard_fleet.fleet.database import FleetDatabase, database_url
    from pegboard_fleet.fleet.jobs import batches_of, state_of
    from pegboard_fleet.fleet.status import workers_of

    try:
        async with FleetDatabase(database_url(os.environ)) as database:
            await database.require_tables()
            workers = await workers_of(database)
            found = [(name, *await state_of(database, name)) for name in await batches_of(database)]
    except StorageError as error:
        return (Block(title="No fleet", markdown=str(error)),)
    rows = ((w.id, w.pool, w.state, str(w.running), str(w.concurrency), w.started) for w in workers)
    stands = Block(title="Workers", table=(_WORKERS, *rows))
    return (stands, *(_block(f"{name} (pool {pool})", state) for name, state, pool in found[::-1]))


def _blocks(folder: Path) -> "Iterator[Block]":
    from pegboard.display import Block

    journals = [file for depth in DEPTH for file in folder.glob(f"{depth}{JOURNAL}")]
    journals.sort(key=lambda file: file.stat().st_mtime, reverse=True)
    for file in journals:
        try:
            state = BatchState.of(file.parent)
        except InvalidInputError as error:
            yield Block(title=str(file.parent.relative_to(folder)), markdown=str(error))
            continue
        yield _block(str(file.parent.relative_to(folder)), state)
    if not journals:
        yield Block(
            title="No batches", markdown="`pegboard batch run JOBS --out FOLDER` makes one."
        )


def _block(name: str, state: BatchState) -> "Block":
    from pegboard.display import Block

    attempts = tuple(state.attempts.values())
    outcomes = [f"{count} {status}" for status, count in sorted(state.counts.items())]
    limit = state.settings.budget_usd
    money = f"{format_usd(state.paid_usd)} of {format_usd(limit)}" if limit else ""
    ended = f"{len(attempts) - len(state.open)} of {len(attempts)} attempts have ended"
    facts = " · ".join(filter(None, (ended, *outcomes, money or format_usd(state.paid_usd))))
    rows = (_HEAD, *(_row(each) for each in attempts[:MOST_ROWS]))
    left = f"\n\n{len(attempts) - MOST_ROWS} more" if len(attempts) > MOST_ROWS else ""
    return Block(title=f"{name}: {facts}", table=rows, markdown=left)


def _row(attempt: Attempt) -> tuple[str, ...]:
    result = attempt.result
    if result is None:
        state = "runs" if attempt.begun else "waits"
        return (attempt.job.id, str(attempt.number), state, "", "", "", "")
    return (
        result.id,
        str(result.attempt),
        result.status,
        "unknown" if result.cost_usd is None else format_usd(result.cost_usd),
        str(result.steps),
        f"{result.ended - result.started:.1f}",
        result.error,
    )
