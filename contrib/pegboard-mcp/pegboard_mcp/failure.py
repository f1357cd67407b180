"""The errors of requests to MCP servers."""


class RequestError(Exception):
    """A server refused a request, or its answer is unusable; the error's message is a sentence."""


class ConnectionLostError(RequestError):
    """The connection ended during a request; `was_sent` says if the request had been sent."""

    def __init__(self, text: str, *, was_sent: bool) -> None:
        super().__init__(text)
        self.was_sent = was_sent


class StaleDefinitionError(RequestError):
    """The server refused a call because the tool's definition has changed."""


class AuthorizationError(RequestError):
    """The server requires the user to sign in first."""


class RegistrationError(AuthorizationError):
    """The OAuth server does not accept any of Pegboard's ways to register a client."""


def lacking_authorization(error: BaseException) -> AuthorizationError | None:
    """Return the AuthorizationError within an exception or exception group, None without any."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(lacking_authorization, error.exceptions)), None)
    return error if isinstance(error, AuthorizationError) else None


def reason_of(error: BaseException) -> str:
    """Return the error's message, or the first message of a group, without a final full stop."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return (str(error) or type(error).__name__).rstrip(".")
