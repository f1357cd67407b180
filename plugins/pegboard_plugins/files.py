"""The ledger of files: what each session has read, and the locks of files that are written."""

import asyncio
from typing import TYPE_CHECKING

import pegboard.unstable
from pegboard import ToolContext, hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable

    from pegboard.files import FileLedger


@hookimpl
async def register_files() -> "Callable[[], FileLedger]":
    """Return the function that opens a ledger for the files of this machine."""
    return open_ledger


def open_ledger() -> "FileLedger":
    """Return a record of the files that an App's sessions have read, with write locks."""
    from pegboard.unstable import LocalLedger  # a run that touches no file does without it

    return LocalLedger()


@hookimpl(trylast=True)
async def tool_execute_after(context: ToolContext) -> None:
    """Record that the user has not yet seen the instruction documents that a tool call changed."""
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
