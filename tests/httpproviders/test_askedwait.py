"""What the headers of a refusal say about the time of the next attempt."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pegboard.http import asked_wait_s

TICK_S = 1.5
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
    ],
)
def test_the_headers_of_other_vendors_are_read(headers: Mapping[str, str], wait_s: float) -> None:
    assert asked_wait_s(headers, 429) == wait_s


def test_the_text_wins_over_the_time_when_a_limit_is_reset() -> None:
    assert asked_wait_s({"x-ratelimit-reset-tokens": "6m0s"}, 429, "try again in 2s") == 2
    assert asked_wait_s({"retry-after": "5"}, 429, "try again in 2s") == 5
