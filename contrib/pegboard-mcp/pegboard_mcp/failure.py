"""The failures of requests to servers."""


class RequestError(Exception):
    """A server refused a request, or its answer is unusable; the text is a sentence."""


class ConnectionLostError(RequestError):
    """The connection ended during a request; `was_sent` says whether the request left."""

    def __init__(self, text: str, *, was_sent: bool) -> None:
        super().__init__(text)
        self.was_sent = was_sent


class StaleDefinitionError(RequestError):
    """The server refuses a call that follows an older definition of the tool."""


class AuthorizationError(RequestError):
    """A server that wants the user's authorization first."""


class RegistrationError(AuthorizationError):
    """The server's authorization server accepts no client that Pegboard could register."""


def lacking_authorization(error: BaseException) -> AuthorizationError | None:
    """Return the want of authorization among the errors of a group."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(lacking_authorization, error.exceptions)), None)
    return error if isinstance(error, AuthorizationError) else None


def reason_of(error: BaseException) -> str:
    """Return the text of an error, of a group's first one, without a full stop."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return (str(error) or type(error).__name__).rstrip(".")
