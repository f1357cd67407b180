"""Exceptions of a turn, in the shape that a message keeps and clients show."""

from asyncio import CancelledError
from typing import Any

from pegboard.errors import (
    AbortedError,
    BudgetError,
    ContextOverflowError,
    PegboardError,
    PluginError,
    ProviderAuthError,
    ProviderError,
)
from pegboard.schema.message import (
    AbortedFailure,
    APIData,
    APIFailure,
    AuthData,
    BudgetFailure,
    ContextOverflowFailure,
    Failure,
    OverflowData,
    PluginFailure,
    ProviderAuthFailure,
    TextData,
    UnknownFailure,
)

ABORTED = "The user stopped the turn."


def denial(error: PegboardError) -> dict[str, Any]:
    """The metadata of a call that was denied; `advice` is for the user, and no model reads it."""
    advice = getattr(error, "advice", "")
    return {"denied": True, "advice": advice} if advice else {"denied": True}


def failure_of(error: BaseException, note: str = "") -> Failure:
    """What a message says about this error; the note is added to that of a provider."""
    match error:
        case ProviderAuthError():
            data = AuthData(provider_id=error.provider_id, message=str(error))
            return ProviderAuthFailure(data=data)
        case ContextOverflowError():
            overflow = OverflowData(message=str(error), response_body=error.body or None)
            return ContextOverflowFailure(data=overflow)
        case ProviderError():
            return APIFailure(
                data=APIData(
                    message=f"{error} ({note})" if note else str(error),
                    is_retryable=error.retryable,
                    status_code=error.status,
                    response_headers=error.headers or None,
                    response_body=error.body or None,
                )
            )
        case BudgetError() | PluginError():
            kind = BudgetFailure if isinstance(error, BudgetError) else PluginFailure
            return kind(data=TextData(message=str(error)))
        case AbortedError() | CancelledError():
            return AbortedFailure(data=TextData(message=str(error) or ABORTED))
        case _:
            return UnknownFailure(data=TextData(message=str(error) or type(error).__name__))
