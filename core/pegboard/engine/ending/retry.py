"""Retries: whether a failed request to a model is made again, and when. Pure functions.

Only a failure that may pass by itself is retried, a limited number of times within a limited time.
The wait is the one that the provider asks for; else it doubles up to a cap.
"""

import asyncio
import re
import socket
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from pegboard.engine.ending.retry_after import asked_wait_s
from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.schema.config import RetryConfig

FIRST_WAIT_S = 2.0
"""The wait after the first attempt (opencode `session/retry.ts`)."""
OWN_JITTER = 0.5
"""Our own guess is shortened by up to this share, so that many clients do not come at once."""
ASKED_JITTER = 0.1
"""What the provider asks for is a lower bound, and is lengthened by up to this share."""
LONGEST_SHOWN_S = 366 * 86_400
"""Beyond a year no date is shown: such a hint is a mistake."""

Kind = Literal[
    "rate_limit",
    "overloaded",
    "server",
    "network",
    "auth",
    "request",
    "overflow",
    "cancelled",
    "gave_up",
    "unknown",
]

_FIRST_CLIENT_FAULT = 400
_FIRST_SERVER_FAULT = 500
_REFUSED = (401, 402, 403, 407)
_NOT_FOUND = 404
_TOO_MANY = 429
_OVERLOADED = 529
_PASSING_CLIENT_FAULTS = (408, 409, 425)

_NO_MONEY = r"insufficient.?(quota|balance|credit)|billing|current quota|out of credits"
_POLICY = r"content.?(policy|filter|management)|safety (policy|system)|usage polic"
_OVERFLOW = (
    r"context.?length.?exceeded|maximum context length|prompt is too long|exceed.?context.?size"
    r"|exceeds the maximum number of tokens|context (window|length|size).{0,40}exceed"
)
_LIMITED = r"too.?many.?requests|rate.?limit"
_BUSY = r"overloaded|exhausted|unavailable|at capacity"
_LASTING = r"invalid|authentication|permission|not.?found|unsupported"


class EmptyAnswerError(ProviderError):
    """The model's answer ended without content; one more attempt may help."""


class RequestFault(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of a failure; a `passing` one may be gone at the next attempt."""

    kind: Kind
    passing: bool = False
    asked_s: float | None = None


class RetryDecision(msgspec.Struct, frozen=True, kw_only=True):
    """`wait_s` is how long to wait before the next attempt, None for no other attempt.

    `note` says why there is no other, where the error itself does not.
    """

    kind: Kind
    wait_s: float | None = None
    note: str = ""


def fault_of(error: BaseException, *, now: datetime) -> RequestFault:
    """The kind of a failure, with what its headers say about the time of the next attempt."""
    match error:
        case asyncio.CancelledError():
            return RequestFault(kind="cancelled")
        case ContextOverflowError():
            return RequestFault(kind="overflow")
        case ProviderAuthError():
            return RequestFault(kind="auth")
        case ProviderError():
            return _provider_fault(error, now)
        case ConnectionError() | TimeoutError() | socket.gaierror():
            return RequestFault(kind="network", passing=True)
        case _:
            return RequestFault(kind="unknown")


def decide(  # noqa: PLR0913 - the facts of a decision, all keyword-only
    fault: RequestFault,
    *,
    attempt: int,
    elapsed_s: float,
    limits: RetryConfig,
    now: datetime,
    draw: Callable[[], float],
) -> RetryDecision:
    """The decision after the failure of this attempt, counted from 1, after `elapsed_s`.

    `draw` gives numbers from 0 to 1 for the jitter; `now` is for the text alone.
    """
    if not fault.passing:
        return RetryDecision(kind=fault.kind)
    if attempt >= limits.attempts:
        note = f"gave up after {attempt} attempts" if attempt > 1 else ""
        return RetryDecision(kind="gave_up", note=note)
    wait_s = _wait_s(fault, attempt, limits, draw())
    if elapsed_s + wait_s <= limits.total_s:
        return RetryDecision(kind=fault.kind, wait_s=wait_s)
    if fault.asked_s is not None:
        return RetryDecision(kind=fault.kind, note=_asked_too_long(fault.asked_s, now))
    return RetryDecision(kind="gave_up", note=f"gave up after {elapsed_s:.0f} s")


def _wait_s(fault: RequestFault, attempt: int, limits: RetryConfig, drawn: float) -> float:
    if fault.asked_s is not None:
        return fault.asked_s * (1 + ASKED_JITTER * drawn)
    wait_s: float = min(FIRST_WAIT_S * 2 ** (attempt - 1), limits.cap_s)
    return wait_s * (1 - OWN_JITTER * drawn)


def _asked_too_long(asked_s: float, now: datetime) -> str:
    if asked_s > LONGEST_SHOWN_S:
        return "the provider asks to wait for more than a year"
    until = now + timedelta(seconds=asked_s)
    return f"the provider asks to wait {asked_s:.0f} s, until {until:%Y-%m-%d %H:%M:%S %Z}"


def _provider_fault(error: ProviderError, now: datetime) -> RequestFault:
    text = f"{error}\n{error.body}"
    kind, passing = _judged(error, text)
    if not passing:
        return RequestFault(kind=kind)
    asked_s = asked_wait_s(error.headers, now=now, limited=kind == "rate_limit")
    return RequestFault(kind=kind, passing=True, asked_s=asked_s)


def _judged(error: ProviderError, text: str) -> tuple[Kind, bool]:
    if error.status != _TOO_MANY and _says(text, _OVERFLOW):
        return "overflow", False
    kind, passing = _by_status(error) if error.status is not None else _by_text(error)
    lasting = _says(text, _NO_MONEY) or _says(text, _POLICY)
    return kind, (passing or error.retryable) and not lasting


def _by_status(error: ProviderError) -> tuple[Kind, bool]:
    status = error.status or 0
    if status == _TOO_MANY:
        return "rate_limit", True
    if status >= _FIRST_SERVER_FAULT:
        return ("overloaded" if status == _OVERLOADED else "server"), True
    if status in _REFUSED:
        return "auth", False
    if status in _PASSING_CLIENT_FAULTS:
        return "server", True
    # OpenAI answers so for models that are only just there (opencode `message-v2.ts`).
    early = status == _NOT_FOUND and error.provider_id == "openai"
    return ("request" if status >= _FIRST_CLIENT_FAULT else "unknown"), early


def _by_text(error: ProviderError) -> tuple[Kind, bool]:
    """The kind of an error event in a stream, or of a connection that failed."""
    text = str(error)
    told = _object(text)
    named = text if told else error.body
    if _says(named, _LIMITED):
        return "rate_limit", True
    if _says(named, _BUSY):
        return "overloaded", True
    if told:
        return "unknown", not _says(named, _LASTING)
    return ("network" if error.retryable else "unknown"), False


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _says(text: str, pattern: str) -> bool:
    # Compiled at the first failure (and kept by `re`), not at every start.
    return re.search(pattern, text, re.IGNORECASE) is not None
