"""The time after which a server asks to be tried again, in the headers or the text of a refusal."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

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
_MILLISECONDS = ("retry-after-ms", "x-ms-retry-after-ms")
_UNIT = r"(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
_SPAN = rf"(\d+(?:\.\d+)?)\s*{_UNIT}"
_ASKED = (
    r"\b(?:again|retry|retrying|wait|available|resets?)"
    r"(?:\s+(?:again|your|the|this|request|after|in|for|at|least|another|about|approximately))*"
    rf"\s+((?:{_SPAN}(?:,?\s*(?:and\s+)?)?)+)"
)
"""What servers write in a text: "try again in 1m20.5s", "retry after 3 seconds"."""
_FIELD = (
    r'"(?:retry_?after|retry_?delay|resets_in)(?:_in)?_?(ms|milliseconds|s|secs|seconds)?"'
    r'\s*:\s*"?(\d+(?:\.\d+)?)(ms|s)?'
)
"""A field of an error: Google's `"retryDelay": "20s"`, ChatGPT's `"resets_in_seconds": 9`."""
_EPOCH_S = 1e9
"""A greater number is an instant in seconds since the epoch: no limit lasts for 30 years."""
_EPOCH_MS = 1e12


def asked_wait_s(
    headers: Mapping[str, str], status: int | None = None, text: str = ""
) -> float | None:
    """Return the seconds after which a server asks to be tried again, None if it names none.

    `retry-after-ms` wins over `retry-after` (seconds or an HTTP date, RFC 9110 10.2.3), and that
    over the `text` of the error. With the status 429 the time when the limit is reset is the last
    resort. Unreadable, negative and past hints, and waits of nothing, are no hints.
    """
    now = datetime.now(UTC)
    known = {name.lower(): value.strip() for name, value in headers.items()}
    for name in _MILLISECONDS:
        if milliseconds := _number(known.get(name, "")):
            return milliseconds / 1000
    after = known.get("retry-after", "")
    wait_s = _number(after) or _until(_http_date(after), now) or _in_text_s(text)
    if wait_s:
        return wait_s
    return _reset_s(known, now) if status == _TOO_MANY else None


def _in_text_s(text: str) -> float:
    """The seconds that the text of an error asks for, 0 if there are none."""
    if field := re.search(_FIELD, text.replace('\\"', '"'), re.IGNORECASE | re.ASCII):
        return float(field[2]) * _unit_s(field[3] or field[1] or "s")
    asked = re.search(_ASKED, text, re.IGNORECASE | re.ASCII)
    return _sum_s(asked[1]) if asked else 0.0


def _sum_s(spans: str) -> float:
    found = re.findall(_SPAN, spans, re.IGNORECASE | re.ASCII)
    return sum(float(count) * _unit_s(unit) for count, unit in found)


def _unit_s(unit: str) -> float:
    name = unit.lower()
    return 0.001 if name.startswith(("ms", "milli")) else _UNITS_S[name[0]]


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
    structured = re.search(_STRUCTURED, headers.get("ratelimit", ""))
    if structured and int(structured[1]):
        yield float(structured[1])
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
    if re.fullmatch(f"({_SPAN})+", text, re.ASCII):
        return _sum_s(text)
    try:
        return _until(datetime.fromisoformat(text), now)
    except (ValueError, TypeError):  # not a date, or one without a zone
        return None
