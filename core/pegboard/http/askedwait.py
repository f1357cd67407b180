"""The wait that a server asks for before a retry, in the headers or the text of an error."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from math import isfinite

_TOO_MANY = 429
_NUMBER = r"\d+(?:\.\d+)?(?:[eE]\+?\d+)?"
_UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_RESET = (
    r"(x-)?rate-?limit-reset(-\w+)*"  # OpenAI, Groq, Together, OpenRouter, Cerebras, the IETF's
    r"|anthropic-ratelimit-(\w+-)+reset"
    r"|(x-)?ratelimitbysize-reset(-\w+)*"  # Mistral
)
_STRUCTURED = r"\bt=(\d+)"
"""The seconds in `ratelimit: "default";r=0;t=30`, as Hugging Face and the later drafts have it."""
_AFTER: Mapping[str, float] = {
    "retry-after-ms": 1000.0,
    "x-ms-retry-after-ms": 1000.0,
    "retry-after": 1.0,
    "x-retry-after": 1.0,
    "x-ratelimit-retry-after": 1.0,
}
"""The headers that ask for a wait, the most exact first, by the units in a second."""
_UNIT = r"(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
_SPAN = rf"(\d+(?:\.\d+)?|\b(?:an?|one)(?=\s))\s*(?:more\s+)?{_UNIT}"
_INSTANT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?\s?(?:Z|UTC|[+-]\d\d:?\d\d)"
_BEFORE = (
    r"\b(?:again|retry|retrying|wait|available|allowed|possible|resets?|back ?off|cool-?down)"
    r"(?:\s+(?:again|your|the|this|request|after|in|for|of|at|on|least|another|about|around"
    r"|approximately))*[\s:~=]+"
)
_WORDINGS: Mapping[str, str] = {
    # A field: Google's `"retryDelay": "20s"`, ChatGPT's `"resets_in_seconds": 9`.
    "field": (
        r'"(?:retry|resets?|wait|cool_?down)(?:[-_]?(?:after|delay|in))*[-_]?'
        r'(ms|milliseconds|s|secs|seconds)?"'
        r'\s*:\s*(?:\{\s*"seconds"\s*:\s*)?"?(\d+(?:\.\d+)?)(ms|s)?["\s,}\]]'
    ),
    # A header that a text repeats, and a sentence without a unit: "retry after 60".
    "header": (
        rf"\bretry[-_ ]?after(?:[-_](ms|seconds))?\s*[:=]?\s*(\d+(?:\.\d+)?)(?![\d.:-]|\s*{_UNIT})"
        r"()"
    ),
    # "try again in 1m20.5s", "Please wait a minute", "retry after 3 seconds".
    "span": rf"{_BEFORE}((?:{_SPAN}(?:,?\s*(?:and\s+)?)?)+)",
    # "The limit resets at 2026-11-28T12:00:00Z".
    "instant": rf"{_BEFORE}({_INSTANT})",
}
"""How servers name a wait in the text of an error."""
_REPEATED_RESET = rf'"({_RESET})"\s*:\s*"?([\d.]+)"?'
"""A header in the body, as OpenRouter repeats those of the server behind it."""
_EPOCH_S = 1e9
"""A greater number is an instant in seconds since the epoch: no limit lasts for 30 years."""
_EPOCH_MS = 1e12


def asked_wait_s(
    headers: Mapping[str, str], status: int | None = None, text: str = ""
) -> float | None:
    """Return the seconds after which a server wants a retry, or None if the server names none.

    `retry-after-ms` has precedence over `retry-after` (seconds, a span such as `1m30s`, or an HTTP
    date, RFC 9110 10.2.3), and both over the `text` of the error. For the status 429, the time when
    the rate limit is reset comes last. Unreadable, negative, past and zero values are ignored. The
    engine decides whether it waits that long.
    """
    now = datetime.now(UTC)
    known = {name.lower(): value.strip() for name, value in headers.items()}
    found = [_after_s(known, now), _in_text_s(text, now)]
    if status == _TOO_MANY:
        repeated = re.findall(_REPEATED_RESET, text.replace('\\"', '"'), re.IGNORECASE | re.ASCII)
        resets = {name.lower(): value for name, *_, value in repeated}
        found += [_reset_s(known, now), _reset_s(resets, now)]
    return next((wait_s for wait_s in found if wait_s and isfinite(wait_s)), None)


def _after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    for name, per_s in _AFTER.items():
        value = headers.get(name, "")
        if number := _number(value):
            return number / per_s
        if wait_s := _spans_s(value) or _until(_http_date(value), now):
            return wait_s
    return None


def _in_text_s(text: str, now: datetime) -> float | None:
    """Return the seconds to wait that the text of an error asks for, or None."""
    text = text.replace('\\"', '"')
    for kind, pattern in _WORDINGS.items():
        found = re.search(pattern, text, re.IGNORECASE | re.ASCII)
        if found is None:
            continue
        if kind == "span":
            return _sum_s(found[1])
        if kind == "instant":
            return _until(_iso(found[1]), now)
        return float(found[2]) * _unit_s(found[3] or found[1] or "s")
    return None


def _spans_s(text: str) -> float | None:
    return _sum_s(text) if re.fullmatch(rf"(?:{_SPAN}\s*)+", text, re.ASCII) else None


def _sum_s(spans: str) -> float:
    found = re.findall(_SPAN, spans, re.IGNORECASE | re.ASCII)
    return sum(float(count if count[0].isdigit() else 1) * _unit_s(unit) for count, unit in found)


def _unit_s(unit: str) -> float:
    name = unit.lower()
    return 0.001 if name.startswith(("ms", "milli")) else _UNITS_S[name[0]]


def _iso(text: str) -> datetime | None:
    """Parse an RFC 3339 time; return None for an invalid time, or a time without a time zone."""
    try:
        date = datetime.fromisoformat(text.replace("UTC", "Z").replace(" Z", "Z"))
    except ValueError:
        return None
    return date if date.tzinfo else None


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
    """Return the seconds until a rate limit is reset, or None without such headers.

    Of several exhausted limits the last reset counts. If none is exhausted, the first reset counts.
    """
    spent = list(_resets(headers, now, only_spent=True))
    return max(spent) if spent else min(_resets(headers, now, only_spent=False), default=None)


def _resets(headers: Mapping[str, str], now: datetime, *, only_spent: bool) -> Iterator[float]:
    structured = re.search(_STRUCTURED, headers.get("ratelimit", ""))
    if structured and (seconds := float(structured[1])):
        yield seconds
    for name, value in headers.items():
        if not re.fullmatch(_RESET, name):
            continue
        if only_spent and headers.get(name.replace("reset", "remaining")) != "0":
            continue
        if wait_s := _span_s(value, now):
            yield wait_s / (1000 if name.endswith("-ms") and wait_s < _EPOCH_S else 1)


def _span_s(text: str, now: datetime) -> float | None:
    """Return the seconds of `20`, `1m30s`, `6ms`, a time since the epoch, or an RFC 3339 time."""
    number = _number(text)
    if number is not None and number > _EPOCH_S:
        instant_s = number / 1000 if number > _EPOCH_MS else number
        return max(instant_s - now.timestamp(), 0.0)
    if number is not None:
        return number
    return _spans_s(text) or _until(_iso(text), now)
