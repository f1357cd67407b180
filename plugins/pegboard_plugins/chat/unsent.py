"""The errors which mean that a shell command has not run."""

from pegboard.errors import (
    ModelNotFoundError,
    NotFoundError,
    PegboardError,
    ServerError,
    ServerUnreachableError,
    SessionBusyError,
)

UNSENT = (ModelNotFoundError, NotFoundError, ServerUnreachableError, SessionBusyError)
UNSENT_THERE = ("NotFoundError", "ProviderModelNotFoundError", "SessionBusyError")
"""The names of these errors in a server's response."""


def is_unsent(error: PegboardError) -> bool:
    """Return whether the error means that a shell command has not run."""
    there = isinstance(error, ServerError) and error.name in UNSENT_THERE
    return there or isinstance(error, UNSENT)
