"""What sessions have read of the files of this machine, and the locks of those that write them."""

from typing import TYPE_CHECKING

from pegboard import hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable

    from pegboard.kit import FileLedger


@hookimpl
async def register_files() -> "Callable[[], FileLedger]":
    """The files of this machine."""
    return open_ledger


def open_ledger() -> "FileLedger":
    """A ledger for the sessions of one App."""
    from pegboard_files import LocalLedger  # a run that touches no file does without it

    return LocalLedger()
