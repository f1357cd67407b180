"""What the headers of a refusal say about the time of the next attempt."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.engine.retry import decide
from pegboard.errors import ProviderError
from pegboard.http import asked_wait_s
from pegboard.schema.config import RetryConfig

TICK_S = 10
"""An instant in whole seconds is as much nearer, and the test takes its time."""


def instant(kind: str, ahead_s: float) -> str:
    """The instant so many seconds ahead, in one of the ways of writing one."""
    then = datetime.now(UTC) + timedelta(seconds=ahead_s)
    match kind:
        case "s":
            return str(int(then.timestamp()))
        case "ms":
            return str(int(then.timestamp()) * 1000)
        case "http":
            return format_datetime(then, usegmt=True)
        case _:
            return then.isoformat(timespec="seconds")


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 1),
        (
            {
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-reset-tokens": "1m30s",
            },
            90,
        ),
        ({"x-ratelimit-reset-tokens": "6ms"}, 0.006),
        ({"x-ratelimit-reset": "20"}, 20),
        ({"x-ratelimit-reset": "soon", "retry-after": "x"}, None),
        ({"x-ratelimit-reset": "2026-03-04T05:06:37"}, None),
        ({"x-ratelimit-reset": "20", "retry-after": "3"}, 3),
        ({"x-ratelimit-limit": "20"}, None),
    ],
)
def test_the_time_when_a_limit_starts_anew_is_the_last_resort(
    headers: Mapping[str, str], wait_s: float | None
) -> None:
    assert asked_wait_s(headers, 429) == wait_s


@pytest.mark.parametrize(
    ("name", "kind", "ahead_s"),
    [
        ("X-RateLimit-Reset", "s", 40),
        ("X-RateLimit-Reset", "ms", 40),
        ("anthropic-ratelimit-requests-reset", "iso", 30),
        ("Retry-After", "http", 20),
    ],
)
def test_an_instant_is_as_far_as_the_clock_has_to_go(name: str, kind: str, ahead_s: int) -> None:
    assert asked_wait_s({name: instant(kind, ahead_s)}, 429) == pytest.approx(ahead_s, abs=TICK_S)


@pytest.mark.parametrize("name", ["anthropic-ratelimit-input-tokens-reset", "retry-after"])
def test_an_instant_that_has_passed_asks_for_nothing(name: str) -> None:
    kind = "http" if name == "retry-after" else "iso"

    assert asked_wait_s({name: instant(kind, -60)}, 429) is None


def test_when_a_limit_starts_anew_says_nothing_about_a_server_that_fails() -> None:
    assert asked_wait_s({"x-ratelimit-reset": "20"}, 503) is None


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("Rate limit reached. Please try again in 20.5s. Visit the page.", 20.5),
        ("Please try again in 7m12.5s.", 432.5),
        ("Please try again in 6ms.", 0.006),
        ("Please try again in 1h2m3s", 3723),
        ("try again in 3s", 3),
        ("Try again in 2 minutes", 120),
        ("try again in 1 minute and 20 seconds", 80),
        ("Please retry after 26 seconds.", 26),
        ("retry after 3 seconds", 3),
        ("Please retry in 20.5s.", 20.5),
        ("Please try again after 30 seconds", 30),
        ("Please wait 15 seconds before the next request", 15),
        ("wait for at least 2 hours", 7200),
        ("The limit resets in 2 days", 172_800),
        ('{"details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}', 34),
        ('{"raw": "{\\"retryDelay\\": \\"34.5s\\"}"}', 34.5),
        ('{"retry_after": 2.5}', 2.5),
        ('{"retryAfter": "4"}', 4),
        ('{"retry_after_seconds": 5}', 5),
        ('{"retry_after_ms": 300}', 0.3),
        ('{"retryAfterMs": 300}', 0.3),
        ('{"type": "usage_limit_reached", "resets_in_seconds": 1234}', 1234),
        ("Please try again later.", None),
        ("The model did not answer within 60 s", None),
        ("timed out after waiting 600 seconds", None),
        ("retry in 0s", None),
        ("Retry-After: 20", 20),
        ("rate limited, retry after 60", 60),
        ("Please wait 1 minute", 60),
        ("try again in a minute", 60),
        ("Please try again in about an hour", 3600),
        ("Please wait one minute before trying again", 60),
        ("Try again in: ~20s", 20),
        ("Too many requests; back off for 10 seconds", 10),
        ("The next request is allowed in 4s", 4),
        ("Retry in 5 more seconds", 5),
        ("please try again in a few seconds", None),
        ("wait 20s and retry", 20),
        ("Please try again in 1 hour, 2 minutes, and 3 seconds.", 3723),
        ('{"reset_after": 3}', 3),
        ('{"retry-after": 20}', 20),
        ('{"cooldown_seconds": 8}', 8),
        ('{"retryInfo": {"retryDelay": {"seconds": 34}}}', 34),
    ],
)
def test_a_wait_in_the_text_of_an_error_is_read(text: str, wait_s: float | None) -> None:
    assert asked_wait_s({}, 400, text) == (None if wait_s is None else pytest.approx(wait_s))


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"ratelimit-reset": "17"}, 17),
        ({"x-rate-limit-reset": "18"}, 18),
        ({"ratelimit": '"default";r=0;t=30'}, 30),
        ({"ratelimitbysize-reset": "19"}, 19),
        ({"x-ratelimit-reset-tokens-minute": "41.5"}, 41.5),
        ({"x-rate-limit-reset-ms": "3000"}, 3),
        ({"retry-after": "1m30s"}, 90),
        ({"retry-after": "120 seconds"}, 120),
        ({"x-ratelimit-retry-after": "7"}, 7),
    ],
)
def test_the_headers_of_other_vendors_are_read(headers: Mapping[str, str], wait_s: float) -> None:
    assert asked_wait_s(headers, 429) == wait_s


def test_the_text_wins_over_the_time_when_a_limit_is_reset() -> None:
    assert asked_wait_s({"x-ratelimit-reset-tokens": "6m0s"}, 429, "try again in 2s") == 2
    assert asked_wait_s({"retry-after": "5"}, 429, "try again in 2s") == 5


def test_an_instant_in_a_text_or_in_a_header_that_it_repeats_is_read() -> None:
    then, body = instant("iso", 40).replace("+00:00", "Z"), '{{"X-RateLimit-Reset": "{}"}}'

    assert asked_wait_s({}, 429, f"resets at {then}") == pytest.approx(40, abs=TICK_S)
    for kind in ("s", "ms"):
        text = body.format(instant(kind, 40))
        assert asked_wait_s({}, 429, text) == pytest.approx(40, abs=TICK_S)
        assert asked_wait_s({}, 500, text) is None


UNITS = {
    0.001: ("ms", " ms", " milliseconds"),
    1.0: ("s", " s", " sec", " secs", " second", " seconds"),
    60.0: ("m", " min", " mins", " minute", " minutes"),
    3600.0: ("h", " hr", " hour", " hours"),
    86_400.0: ("d", " day", " days"),
}
SENTENCES = (
    "Rate limit reached. Please try again in {}. Visit the page.",
    "Please retry after {}.",
    "Retry your request in approximately {}",
    "You have to wait at least {} before the next request",
    "The quota resets in {}",
    '{{"error": {{"message": "try again in {}", "code": 429}}}}',
)
COUNTS = st.integers(1, 9999) | st.decimals(1, 999, places=2)


@given(
    count=COUNTS,
    unit=st.sampled_from([*UNITS]),
    sentence=st.sampled_from(SENTENCES),
    data=st.data(),
)
def test_each_sentence_is_read_with_each_unit(count, unit, sentence, data) -> None:
    text = sentence.format(f"{count}{data.draw(st.sampled_from(UNITS[unit]))}")

    assert asked_wait_s({}, None, text) == pytest.approx(float(count) * unit)


@given(
    parts=st.lists(st.integers(1, 59), min_size=1, max_size=4),
    name=st.sampled_from(["retry-after", "x-ratelimit-reset-requests"]),
    gap=st.sampled_from(["", " "]),
)
def test_a_span_of_several_units_is_their_sum(parts, name, gap) -> None:
    units = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)][-len(parts) :]
    text = gap.join(f"{count}{unit}" for count, (unit, _) in zip(parts, units, strict=True))

    wait_s = sum(count * unit_s for count, (_, unit_s) in zip(parts, units, strict=True))
    assert asked_wait_s({name: text}, 429) == wait_s
    assert asked_wait_s({}, None, f"try again in {text}") == wait_s


VALUES = st.text(max_size=40) | st.from_regex(r"[0-9.eE+]{1,400}|t=9{5000}", fullmatch=True)
NAMES = st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "ratelimit"])
WORDS = st.sampled_from(
    ["retry", "after", "again", "in", "wait", '"retryDelay":', "9" * 5000, "1e999", "s", "a"]
)


@given(
    headers=st.dictionaries(NAMES, VALUES),
    text=st.text(max_size=80) | st.lists(WORDS).map(" ".join),
    elapsed_s=st.floats(0, 1000),
)
def test_whatever_a_server_says_no_wait_is_longer_than_the_user_s_limit(
    headers, text, elapsed_s
) -> None:
    wait_s = asked_wait_s(headers, 429, text)
    error = ProviderError("busy", provider_id="p", retryable=True, wait_s=wait_s)

    decision = decide(error, 1, elapsed_s=elapsed_s, limits=RetryConfig(), draw=lambda: 1.0)

    assert wait_s is None or 0 < wait_s < float("inf")
    assert decision.wait_s is None or elapsed_s + decision.wait_s <= RetryConfig().total_s
