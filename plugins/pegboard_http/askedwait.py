"""The time after which a server asks to be tried again, as the headers of its refusal say it."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

_TOO_MANY = 429
_NUMBER = r"\d+(?:\.\d+)?(?:[eE]\+?\d+)?"
_PARTS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"(\d+(?:\.\d+)?)(ms|d|h|m|s)"
_RESET = r"x-ratelimit-reset(-\w+)*|anthropic-ratelimit-(\w+-)+reset"
_EPOCH_S = 1e9
"""A greater number is an instant in seconds since the epoch: no limit lasts for 30 years."""
_EPOCH_MS = 1e12


def asked_wait_s(headers: Mapping[str, str], status: int | None = None) -> float | None:
    """The seconds after which a server asks to be tried again, None if it names no such time.

    `retry-after-ms` wins over `retry-after` (seconds or an HTTP date, RFC 9110 10.2.3). With
    the status 429 the time when the limit starts anew is the last resort.
    Unreadable, negative and past hints, and waits of nothing, are no hints.
    """
    now = datetime.now(UTC)
    known = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _number(known.get("retry-after-ms", ""))
    if milliseconds:
        return milliseconds / 1000
    after = known.get("retry-after", "")
    wait_s = _number(after) or _until(_http_date(after), now)
    if wait_s:
        return wait_s
    return _reset_s(known, now) if status == _TOO_MANY else None


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
