"""Retries: whether a failed request is made again, when, and of which model.

Only a failure that may pass by itself is retried, a limited number of times within a limited time.
The wait is the one that the provider asks for; else it doubles up to a cap. Where the model cannot
answer, one that the user has listed for that is asked instead.
"""

import asyncio
import random
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from pegboard.engine.finish import EmptyAnswerError
from pegboard.engine.models import Models
from pegboard.errors import (
    ContextOverflowError,
    ModelNotFoundError,
    ProviderAuthError,
    ProviderError,
)
from pegboard.kit.hosts import is_loopback
from pegboard.schema.config import Config, ProviderConfig, RetryConfig
from pegboard.schema.model import Model

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


_NUMBER = r"\d+(?:\.\d+)?(?:[eE]\+?\d+)?"
_PARTS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"(\d+(?:\.\d+)?)(ms|d|h|m|s)"
_RESET = r"x-ratelimit-reset(-\w+)*|anthropic-ratelimit-(\w+-)+reset"
_EPOCH_S = 1e9
"""A greater number is an instant in seconds since the epoch: no limit lasts for 30 years."""
_EPOCH_MS = 1e12


def asked_wait_s(headers: Mapping[str, str], *, now: datetime, limited: bool) -> float | None:
    """Seconds from `now`, None when the headers ask for nothing that can be used.

    `retry-after-ms` wins over `retry-after` (seconds or an HTTP date, RFC 9110 10.2.3). For a
    request that was `limited` the time when the limit starts anew is the last resort.
    Unreadable, negative and past hints, and waits of nothing, are no hints.
    """
    known = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _number(known.get("retry-after-ms", ""))
    if milliseconds:
        return milliseconds / 1000
    after = known.get("retry-after", "")
    wait_s = _number(after) or _until(_http_date(after), now)
    if wait_s:
        return wait_s
    return _reset_s(known, now) if limited else None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(_NUMBER, text, re.ASCII) else None


def _http_date(text: str) -> datetime | None:
    from email.utils import parsedate_to_datetime  # 9 ms of imports, at the first date only

    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _until(date: datetime | None, now: datetime) -> float | None:
    wait_s = (date - now).total_seconds() if date else 0.0
    return wait_s if wait_s > 0 else None


def _reset_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """When the limit that was hit starts anew: of those with nothing left, else the soonest."""
    spent = list(_resets(headers, now, only_spent=True))
    return max(spent) if spent else min(_resets(headers, now, only_spent=False), default=None)


def _resets(headers: Mapping[str, str], now: datetime, *, only_spent: bool) -> Iterator[float]:
    for name, value in headers.items():
        if not re.fullmatch(_RESET, name):
            continue
        if only_spent and headers.get(name.replace("reset", "remaining")) != "0":
            continue
        wait_s = _span_s(value, now)
        if wait_s:
            yield wait_s


def _span_s(text: str, now: datetime) -> float | None:
    """Seconds of `20`, `1m30s`, `6ms`, an instant since the epoch, or one by RFC 3339."""
    number = _number(text)
    if number is not None and number > _EPOCH_S:
        instant_s = number / 1000 if number > _EPOCH_MS else number
        return max(instant_s - now.timestamp(), 0.0)
    if number is not None:
        return number
    if re.fullmatch(f"({_PART})+", text, re.ASCII):
        return sum(float(count) * _PARTS[unit] for count, unit in re.findall(_PART, text))
    try:
        return _until(datetime.fromisoformat(text), now)
    except (ValueError, TypeError):  # not a date, or one without a zone
        return None


EMPTY_ANSWERS = 2
"""A model that says nothing this often has nothing to say."""


class Attempts:
    """How many attempts there were, `made` of them before, and what follows from the last failure.

    The time for them begins with the first failure: an answer, or a tool in it, may have taken
    long before that. It is the loop's, which no change of the clock moves.
    """

    def __init__(self, limits: RetryConfig, *, made: int = 0) -> None:
        self.made = made
        self._limits = limits
        self._empty = 0
        self._failed_at: float | None = None

    def is_hopeless(self, error: ProviderError, decision: RetryDecision, *, after_s: float) -> bool:
        """Whether another model shall be asked, as this one cannot answer within that time."""
        fault = fault_of(error, now=datetime.now(UTC))
        began_at = self._failed_at
        assert began_at is not None
        left_s = after_s - (asyncio.get_running_loop().time() - began_at)
        return is_hopeless(error, fault.kind, decision, left_s=left_s)

    def failed(self, error: ProviderError) -> RetryDecision:
        """What follows from one more failure."""
        now = datetime.now(UTC)
        time = asyncio.get_running_loop().time()
        if self._failed_at is None:
            self._failed_at = time
        self.made += 1
        self._empty += isinstance(error, EmptyAnswerError)
        if self._empty >= EMPTY_ANSWERS:
            return RetryDecision(kind="gave_up", note=f"{self._empty} times")
        return decide(
            fault_of(error, now=now),
            attempt=self.made,
            elapsed_s=time - self._failed_at,
            limits=self._limits,
            now=now,
            draw=random.random,
        )


_HELD_UP: frozenset[Kind] = frozenset({"rate_limit", "overloaded", "server", "network"})
"""What may pass by itself, and is waited for as long as the user wants."""
_MISSING = (404, 410)
_GONE = r"model.{0,80}(not.?found|does not exist|deprecated|decommissioned|no longer|retired)"


def is_hopeless(
    error: ProviderError, kind: Kind, decision: RetryDecision, *, left_s: float
) -> bool:
    """Whether another model shall be asked instead of this one, again or at all.

    That is where it is gone, refuses the key, or would be asked again only when the `left_s`
    seconds are over in which it may be waited for.
    """
    if kind == "auth" or _is_gone(error):
        return True
    return kind in _HELD_UP and (decision.wait_s is None or decision.wait_s > left_s)


def _is_gone(error: ProviderError) -> bool:
    return error.status in _MISSING or (
        error.status is not None
        and re.search(_GONE, f"{error}\n{error.body}", re.IGNORECASE | re.DOTALL) is not None
    )


async def next_model(config: Config, models: Models, model: Model, tried: set[str]) -> Model | None:
    """The first model of the user's list that was not `tried`, which it is then; None at its end.

    What is asked of a model on the user's own machine goes to another machine only where the
    provider's own list says so.
    """
    own = config.provider.get(model.provider_id, ProviderConfig()).fallback
    for name in own or config.fallback:
        if name in tried:
            continue
        tried.add(name)
        try:
            found = await models.find(name)
        except ModelNotFoundError:
            continue
        if own or is_local(found) or not is_local(model):
            return found
    return None


def is_local(model: Model) -> bool:
    """Whether the model is on this machine, as far as can be seen.

    That is at a loopback address; without any address, one that costs nothing.
    """
    if model.api.url:
        return is_loopback(urlsplit(model.api.url).hostname or "")
    return model.cost is not None and not (model.cost.input or model.cost.output)
