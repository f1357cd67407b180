"""The errors that occur before a shell command of the user is started."""

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
    """Return whether this error means that the user's shell command was not started."""
    there = isinstance(error, ServerError) and error.name in UNSENT_THERE
    return there or isinstance(error, UNSENT)
