"""Which failures of a model are tried again, when, and what is left of a failed attempt."""

import asyncio
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from statistics import fmean
from typing import Any

import pytest

from cases import built, load
from pegboard.engine.retry import RequestFault, RetryDecision, asked_wait_s, decide, fault_of
from pegboard.errors import ProviderError
from pegboard.schema.config import RetryConfig

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
PATIENT = RetryConfig(attempts=50, total_s=10_000)
"""Enough for the cases of late attempts."""
DRAWS = 300
CASES = load("retry_cases.json")
CAUSES = {
    "ConnectionRefusedError": ConnectionRefusedError,
    "asyncio.CancelledError": asyncio.CancelledError,
    "KeyError": KeyError,
}


def dated(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Headers with `@date+20` as the HTTP date 20 seconds after `NOW`."""
    found = dict(headers or {})
    for name, value in found.items():
        if value.startswith("@date"):
            date = NOW + timedelta(seconds=int(value.removeprefix("@date")))
            found[name] = format_datetime(date, usegmt=True)
    return found


def error_of(case: Mapping[str, Any]) -> BaseException:
    message = built(case["gen"]["message"]) if "gen" in case else case["message"]
    if "cause" in case:
        return CAUSES[case["cause"]](message)
    return ProviderError(
        message,
        provider_id=case.get("provider", "some"),
        status=case["status"],
        headers=dated(case["headers"]),
        body=case["body"],
    )


def decided(
    case: Mapping[str, Any], fault: RequestFault, limits: RetryConfig, drawn: float
) -> RetryDecision:
    return decide(
        fault,
        attempt=case["attempt"],
        elapsed_s=0,
        limits=limits,
        now=NOW,
        draw=lambda: drawn,
    )


@pytest.mark.parametrize("limits", [RetryConfig(), PATIENT], ids=["default", "patient"])
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_cases_of_the_rule(case: Mapping[str, Any], limits: RetryConfig) -> None:
    expected = case["expect"]
    rng = random.Random(case["id"])

    fault = fault_of(error_of(case), now=NOW)  # once: nothing in it is drawn

    drawn = [decided(case, fault, limits, rng.random()) for _ in range(DRAWS)]

    again = [decision.wait_s is not None for decision in drawn]
    free = expected["retry"] is None
    assert free or set(again) == {expected["retry"]}
    if all(again) or not free:
        assert {decision.kind for decision in drawn} == {expected["kind"]}
    waits_ms = [decision.wait_s * 1000 for decision in drawn if decision.wait_s is not None]
    if waits_ms and "delay_range" in expected:
        low, high = expected["delay_range"]
        assert low <= min(waits_ms) <= max(waits_ms) <= high
        assert len(set(waits_ms)) > DRAWS // 2, "there is a jitter"
    if waits_ms and "delay_mean_range" in expected:
        low, high = expected["delay_mean_range"]
        assert low <= fmean(waits_ms) <= high


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
        ({"X-RateLimit-Reset": str(int(NOW.timestamp() + 40))}, 40),
        ({"X-RateLimit-Reset": str(int(NOW.timestamp() + 40) * 1000)}, 40),
        ({"anthropic-ratelimit-requests-reset": "2026-03-04T05:06:37Z"}, 30),
        ({"anthropic-ratelimit-input-tokens-reset": "2026-03-04T05:00:00Z"}, None),
        ({"x-ratelimit-reset": "soon", "retry-after": "x"}, None),
        ({"x-ratelimit-reset": "2026-03-04T05:06:37"}, None),
        ({"x-ratelimit-reset": "20", "retry-after": "3"}, 3),
        ({"x-ratelimit-limit": "20"}, None),
    ],
)
def test_the_time_when_a_limit_starts_anew_is_the_last_resort(
    headers: Mapping[str, str], wait_s: float | None
) -> None:
    assert asked_wait_s(headers, now=NOW, limited=True) == wait_s


def test_when_a_limit_starts_anew_says_nothing_about_a_server_that_fails() -> None:
    assert asked_wait_s({"x-ratelimit-reset": "20"}, now=NOW, limited=False) is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ProviderError("x", status=429, body='{"code": "insufficient_quota"}'), "rate_limit"),
        (ProviderError("x", status=500, body="blocked by our content policy"), "server"),
        (ProviderError("x", status=402), "auth"),
        (ProviderError('{"error": {"type": "invalid_request_error"}}'), "unknown"),
    ],
)
def test_what_will_not_pass_is_not_tried_again(error: ProviderError, kind: str) -> None:
    assert fault_of(error, now=NOW) == RequestFault(kind=kind)


def test_a_provider_may_say_that_a_failure_passes() -> None:
    broken = ProviderError("the answer broke off", retryable=True)

    assert fault_of(broken, now=NOW) == RequestFault(kind="network", passing=True)


def test_only_openai_is_asked_again_after_a_404() -> None:
    asked = {
        name: fault_of(ProviderError("x", provider_id=name, status=404), now=NOW).passing
        for name in ("openai", "other")
    }

    assert asked == {"openai": True, "other": False}


def test_a_wait_over_the_time_for_all_attempts_ends_them_and_says_until_when() -> None:
    fault = RequestFault(kind="rate_limit", passing=True, asked_s=86_400)

    decision = decide(
        fault, attempt=1, elapsed_s=0, limits=RetryConfig(), now=NOW, draw=lambda: 0.0
    )

    assert decision == RetryDecision(
        kind="rate_limit",
        note="the provider asks to wait 86400 s, until 2026-03-05 05:06:07 UTC",
    )


def test_the_time_for_all_attempts_counts_the_waits() -> None:
    fault = RequestFault(kind="server", passing=True)
    limits = RetryConfig(total_s=10)

    decisions = [
        decide(fault, attempt=1, elapsed_s=elapsed_s, limits=limits, now=NOW, draw=lambda: 0.0)
        for elapsed_s in (8.0, 8.1)
    ]

    assert decisions == [
        RetryDecision(kind="server", wait_s=2),
        RetryDecision(kind="gave_up", note="gave up after 8 s"),
    ]
