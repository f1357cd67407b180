"""The files of this machine that sessions have read, and the locks of their writers."""

import asyncio
from typing import TYPE_CHECKING

import pegboard.unstable
from pegboard import ToolContext, hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable

    from pegboard.files import FileLedger


@hookimpl
async def register_files() -> "Callable[[], FileLedger]":
    """Register the files of this machine."""
    return open_ledger


def open_ledger() -> "FileLedger":
    """Return a ledger for the sessions of one App."""
    from pegboard.unstable import LocalLedger  # a run that touches no file does without it

    return LocalLedger()


@hookimpl(trylast=True)
async def tool_execute_after(context: ToolContext) -> None:
    """Record the documents that the call has changed as unseen, formatted as they now are."""
    session = context.session
    entries = session.config.instructions
    documents = [
        path
        for path in context.changed
        if pegboard.unstable.instructs(path, entries)
        or path in pegboard.unstable.imported_documents(session.id)
    ]
    if documents and session.places is not None:
        from pegboard_plugins.shared.frontend import UnseenDocuments  # few calls change one

        unseen = UnseenDocuments(session.places.unseen_documents)
        await asyncio.to_thread(unseen.note, documents)
