"""What the headers of a refusal say about the time of the next attempt."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pegboard_http import asked_wait_s

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
