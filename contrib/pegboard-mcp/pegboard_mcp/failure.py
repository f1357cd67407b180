"""The failures of requests to servers."""


class RequestError(Exception):
    """A request that the server refused, or whose answer cannot be used; the text is a sentence."""


class ConnectionLostError(RequestError):
    """A request that was under way when the connection ended; `was_sent` says whether it left."""

    def __init__(self, text: str, *, was_sent: bool) -> None:
        super().__init__(text)
        self.was_sent = was_sent


class StaleDefinitionError(RequestError):
    """A call that the server refuses because it was made by an older definition of the tool."""


class AuthorizationError(RequestError):
    """A server that wants the user's authorization first."""


class RegistrationError(AuthorizationError):
    """A server whose authorization server takes no client that Pegboard could register."""


def lacking_authorization(error: BaseException) -> AuthorizationError | None:
    """Return the want of authorization among the errors of a group."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(lacking_authorization, error.exceptions)), None)
    return error if isinstance(error, AuthorizationError) else None


def reason_of(error: BaseException) -> str:
    """Return what an error says, of a group the first one, without a full stop."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return (str(error) or type(error).__name__).rstrip(".")
