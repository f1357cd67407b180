"""Exceptions of a turn, in the shape that a message keeps and clients show."""

from pegboard.errors import AbortedError, ProviderAuthError, ProviderError
from pegboard.schema.message import (
    AbortedFailure,
    APIData,
    APIFailure,
    AuthData,
    Failure,
    ProviderAuthFailure,
    TextData,
    UnknownFailure,
)

ABORTED = "The user stopped the turn."


def failure_of(error: BaseException) -> Failure:
    """What a message says about this error."""
    match error:
        case ProviderAuthError():
            data = AuthData(provider_id=error.provider_id, message=str(error))
            return ProviderAuthFailure(data=data)
        case ProviderError():
            return APIFailure(
                data=APIData(
                    message=str(error),
                    is_retryable=error.retryable,
                    status_code=error.status,
                    response_headers=error.headers or None,
                    response_body=error.body or None,
                )
            )
        case AbortedError():
            return AbortedFailure(data=TextData(message=str(error) or ABORTED))
        case _:
            return UnknownFailure(data=TextData(message=str(error) or type(error).__name__))
