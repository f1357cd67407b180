"""The decoding of a server's answers: a value, or the error to raise."""

from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from pegboard import PegboardError
from pegboard.errors import ServerError, ServerUnreachableError, TimeLimitError
from pegboard_client.address import START
from pegboard_plugins.shared.frontend import decoded

if TYPE_CHECKING:
    import httpx

OK, REDIRECTED, UNAUTHORIZED = 200, 300, 401
_SHOWN = 300
_Value = TypeVar("_Value")


class _Refusal(msgspec.Struct, frozen=True):
    """An error in the JSON format of OpenCode's protocol."""

    name: str
    data: dict[str, Any]


def value_of(status: int, body: bytes, kind: type[_Value], url: str) -> _Value:
    """Decode the body of an answer; return None for an empty body.

    The server sends the status of a slow answer early, so that the body may still be an error.

    :raises ServerError: when the answer is an error, or not of the type `kind`.
    """
    if not OK <= status < REDIRECTED:
        raise refusal(status, body, url)
    try:
        return decoded(body or b"null", kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if _refusal(body) is not None:
            raise refusal(status, body, url) from None
        text = f"the server at {url} gave an answer that this client does not understand: {error}"
        raise ServerError(text, status=status, name="UnexpectedAnswer") from error


def refusal(status: int, body: bytes, url: str) -> ServerError:
    """Return the exception for an answer with an error status."""
    told = _refusal(body)
    data = told.data if told is not None else {}
    name = told.name if told is not None else "UnauthorizedError" * (status == UNAUTHORIZED)
    if status == UNAUTHORIZED:
        return ServerError(_locked(url), status=status, name=name, data=data)
    if told is None:
        shown = body[:_SHOWN].decode(errors="replace") or "nothing"
        text = f"{url} answered {status} and is no server of this protocol, it seems: {shown}"
        return ServerError(text, status=status, name="UnexpectedAnswer")
    message = data.get("message")
    text = message if isinstance(message, str) and message else told.name
    return ServerError(text, status=status, name=name, data=data)


def failure(error: "httpx.TransportError", url: str) -> PegboardError:
    """Return the exception for a request that got no complete answer."""
    import httpx

    why = " ".join(str(error).split()) or type(error).__name__
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return ServerUnreachableError(f"no server answers at {url} ({why}); {START}")
        case httpx.TimeoutException():
            return TimeLimitError(f"the server at {url} did not answer in time")
        case _:
            return ServerUnreachableError(f"the connection to the server at {url} broke off: {why}")


def _locked(url: str) -> str:
    port = urlsplit(url).port or ""
    return (
        f"the server at {url} is locked: its token is in server-{port}.json in the state folder of "
        "the user who started it; a password goes into PEGBOARD_SERVER_PASSWORD"
    )


def _refusal(body: bytes) -> _Refusal | None:
    try:
        return msgspec.json.decode(body, type=_Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
