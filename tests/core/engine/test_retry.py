"""Which failures of a model are tried again, and when."""

import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from statistics import fmean
from typing import Any
from urllib.parse import urlsplit

import pytest

from pegboard.engine.retry import RetryDecision, decide, is_hopeless
from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.http.refusals import Refusals
from pegboard.http.wireformat import Endpoint
from pegboard.schema.config import RetryConfig
from support.tools.cases import built, load

PATIENT = RetryConfig(attempts=50, total_s=10_000)
"""Enough for the cases of late attempts."""
DRAWS = 300
CASES = load("retry_cases.json")
KINDS = {"overflow": ContextOverflowError, "auth": ProviderAuthError}
"""The errors that are more than a failure, by the kind of a case."""
ANOTHER_MAY_ANSWER = {"rate_limit", "overloaded", "server", "network", "auth"}


def refusals(name: str = "some") -> Refusals:
    return Refusals(Endpoint(id=name, name=name, url="https://model.example/v1"), {})


def dated(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Headers with `@date+20` as the HTTP date 20 seconds from here."""
    found = dict(headers or {})
    for name, value in found.items():
        if value.startswith("@date"):
            date = datetime.now(UTC) + timedelta(seconds=int(value.removeprefix("@date")))
            found[name] = format_datetime(date, usegmt=True)
    return found


def error_of(case: Mapping[str, Any]) -> ProviderError:
    """What a provider behind HTTP makes of the case; of plain words, what any provider does."""
    message = built(case["gen"]["message"]) if "gen" in case else case["message"]
    if "cause" in case:
        return refusals().unreachable(urlsplit("https://model.example"), ConnectionError(message))
    if case["status"] is not None:
        body = case["body"] or message
        return refusals().refused(case["status"], dated(case["headers"]), body)
    if message.startswith("{"):
        said = json.loads(message)
        return refusals().in_stream(said.get("error", said))
    return ProviderError(message)


def decided(
    case: Mapping[str, Any], error: ProviderError, limits: RetryConfig, drawn: float
) -> RetryDecision:
    return decide(error, case["attempt"], elapsed_s=0, limits=limits, draw=lambda: drawn)


@pytest.mark.parametrize("limits", [RetryConfig(), PATIENT], ids=["default", "patient"])
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_cases_of_the_rule(case: Mapping[str, Any], limits: RetryConfig) -> None:
    expected = case["expect"]
    rng = random.Random(case["id"])

    error = error_of(case)  # once: nothing in it is drawn

    drawn = [decided(case, error, limits, rng.random()) for _ in range(DRAWS)]

    again = [decision.wait_s is not None for decision in drawn]
    free = expected["retry"] is None
    assert free or set(again) == {expected["retry"]}
    if expected["kind"] == "gave_up":
        assert all(decision.note.startswith("gave up after") for decision in drawn)
    else:
        assert type(error) is KINDS.get(expected["kind"], ProviderError)
        elsewhere = is_hopeless(error, RetryDecision(), left_s=0)
        assert elsewhere == (expected["kind"] in ANOTHER_MAY_ANSWER)
    waits_ms = [decision.wait_s * 1000 for decision in drawn if decision.wait_s is not None]
    if waits_ms and "delay_range" in expected:
        low, high = expected["delay_range"]
        assert low <= min(waits_ms) <= max(waits_ms) <= high
        assert len(set(waits_ms)) > DRAWS // 2, "there is a jitter"
    if waits_ms and "delay_mean_range" in expected:
        low, high = expected["delay_mean_range"]
        assert low <= fmean(waits_ms) <= high


@pytest.mark.parametrize(
    ("error", "elsewhere"),
    [
        (refusals().refused(429, {}, '{"code": "insufficient_quota"}'), True),
        (refusals().refused(500, {}, "blocked by our content policy"), True),
        (refusals().refused(429, {}, "blocked by our content policy"), True),
        (refusals().refused(402, {}, "pay first"), True),
        (refusals().in_stream({"type": "invalid_request_error"}), False),
    ],
)
def test_what_will_not_pass_is_not_tried_again(error: ProviderError, *, elsewhere: bool) -> None:
    decision = decide(error, 1, elapsed_s=0, limits=PATIENT, draw=lambda: 0.0)

    assert decision == RetryDecision()
    assert is_hopeless(error, decision, left_s=60) is elsewhere


def test_a_quota_that_says_when_it_is_filled_again_is_waited_for() -> None:
    text = "You exceeded your current quota, please check your plan. Please retry in 34.5s."

    error = refusals().refused(429, {}, json.dumps({"error": {"message": text}}))

    assert decide(error, 1, elapsed_s=0, limits=PATIENT, draw=lambda: 0.0).wait_s == 34.5


def test_a_provider_may_say_that_a_failure_passes() -> None:
    broken = ProviderError("the answer broke off", retryable=True)

    decision = decide(broken, 1, elapsed_s=0, limits=RetryConfig(), draw=lambda: 0.0)

    assert decision == RetryDecision(wait_s=2)


@pytest.mark.parametrize(
    ("status", "passes"),
    [(None, False), (400, False), (404, False), (408, True), (429, True), (500, True), (529, True)],
)
def test_where_a_provider_does_not_say_whether_a_failure_passes_its_status_does(
    status: int | None, *, passes: bool
) -> None:
    assert ProviderError("x", status=status).retryable is passes
    assert ProviderError("x", status=status, retryable=not passes).retryable is not passes
    assert not ContextOverflowError("x", status=status).retryable
    assert not ProviderAuthError("x", status=status).retryable


def test_only_openai_is_asked_again_after_a_404() -> None:
    asked = {name: refusals(name).refused(404, {}, "x").retryable for name in ("openai", "other")}

    assert asked == {"openai": True, "other": False}


def test_a_wait_over_the_time_for_all_attempts_ends_them_and_says_until_when() -> None:
    error = ProviderError("slow down", status=429, wait_s=86_400)
    soon, late = (datetime.now(UTC) + timedelta(days=1, seconds=each) for each in (0, 60))

    decision = decide(error, 1, elapsed_s=0, limits=RetryConfig(), draw=lambda: 0.0)

    assert decision.wait_s is None
    said, until = decision.note.rsplit("until ", 1)
    assert said == "the provider asks to wait 86400 s, "
    assert f"{soon:%F %T %Z}" <= until <= f"{late:%F %T %Z}"


def test_the_time_for_all_attempts_counts_the_waits() -> None:
    error = ProviderError("busy", status=503)
    limits = RetryConfig(total_s=10)

    decisions = [
        decide(error, 1, elapsed_s=elapsed_s, limits=limits, draw=lambda: 0.0)
        for elapsed_s in (8.0, 8.1)
    ]

    assert decisions == [RetryDecision(wait_s=2), RetryDecision(note="gave up after 8 s")]
