"""How long a server may take to say its first word, and what counts as life until then."""

from pathlib import Path

import pytest

from pegboard.errors import ProviderError
from pegboard.http.httpprovider import LOCAL_TIMEOUT_S, HttpProvider
from pegboard.providers import Heartbeat
from pegboard.schema.config import Config, ProviderConfig
from pegboard_plugins.openai_compatible import register_providers
from support.models import model_server as ms
from support.models.faulty_model import playing
from support.models.keyed import keys_of
from support.models.provider_run import events_of, provider_at, request_for, text_of

SLOW_S = 2.4
"""Longer than the limit on silence below and the second that the engine's own limit adds."""
IDLE_S = 1.0


async def _failure(*answer: ms.Answer, **facts: object) -> ProviderError:
    async with ms.ModelServer(ms.in_order(answer)) as server:
        provider = provider_at(server.url, **facts)
        request = request_for(provider.resolve("m"), idle_timeout_s=IDLE_S)
        try:
            with pytest.raises(ProviderError) as caught:
                await events_of(provider, request)
        finally:
            await provider.aclose()
    return caught.value


async def test_a_first_event_may_come_later_than_the_limit_on_silence(tmp_path: Path) -> None:
    answer = [ms.Status(), b": loading\n\n", ms.Pause(SLOW_S), *ms.say("all is well")]
    async with playing(tmp_path, answer, idle_s=IDLE_S, first_event_s=60) as setting:
        played = await setting.prompt()

    assert (played.text, len(played.requests)) == ("all is well", 1)


async def test_the_head_may_come_later_than_the_limit_on_silence(tmp_path: Path) -> None:
    answer = [ms.Pause(SLOW_S), *ms.say("all is well")]
    async with playing(tmp_path, answer, idle_s=IDLE_S) as setting:
        played = await setting.prompt()

    assert (played.text, len(played.requests)) == ("all is well", 1)


@pytest.mark.parametrize(
    "sign",
    [b": still loading\n\n", {"choices": [{"index": 0, "delta": {"role": "assistant"}}]}],
)
async def test_comments_and_empty_frames_are_life_before_the_first_event(
    tmp_path: Path, sign: ms.Piece
) -> None:
    signs = [each for _ in range(25) for each in (sign, ms.Pause(SLOW_S / 16))]
    answer = [*signs, *ms.say("all is well")]
    async with playing(tmp_path, answer, idle_s=SLOW_S / 2) as setting:
        played = await setting.prompt()

    assert (played.text, len(played.requests)) == ("all is well", 1)


async def test_silence_before_the_first_event_is_a_failure_that_names_the_setting() -> None:
    error = await _failure(b": hello\n\n", ms.Pause())

    assert error.retryable
    assert "no answer began within 1 s; a higher `stream_idle_timeout_s`" in str(error)


async def test_a_local_server_that_is_late_names_its_own_setting() -> None:
    error = await _failure(b": hello\n\n", ms.Pause(), first_event_s=1.2)
    late = await _failure(ms.Pause(), timeout_s=1)

    assert "within 1.2 s; a higher `provider.test.options.timeout_s`" in str(error)
    assert "within 1 s; a higher `provider.test.options.timeout_s`" in str(late)


async def test_silence_in_the_middle_names_the_setting() -> None:
    error = await _failure(ms.text("Hel"), ms.Pause(), first_event_s=60)

    assert "nothing came for 1 s; a higher `stream_idle_timeout_s`" in str(error)


async def test_a_provider_beats_while_it_waits() -> None:
    answer = [ms.Status(), b": loading\n\n", ms.Pause(SLOW_S), *ms.say("hi")]
    async with ms.ModelServer(ms.in_order(answer)) as server:
        provider = provider_at(server.url, first_event_s=60)
        events = await events_of(provider, request_for(provider.resolve("m")))
        await provider.aclose()

    assert Heartbeat() in events
    assert text_of(events) == "hi"


@pytest.mark.parametrize(
    ("url", "options", "limits"),
    [
        ("http://127.0.0.1:1/v1", {}, (LOCAL_TIMEOUT_S, LOCAL_TIMEOUT_S)),
        ("http://localhost:1/v1", {}, (LOCAL_TIMEOUT_S, LOCAL_TIMEOUT_S)),
        ("http://[::1]:1/v1", {"timeout_s": 7}, (7, 7)),
        ("https://example.com/v1", {}, (60, 0)),
        ("https://example.com/v1", {"timeout_s": 7}, (7, 0)),
    ],
)
async def test_a_server_on_this_machine_has_long_to_begin(
    url: str, options: dict[str, object], limits: tuple[float, float]
) -> None:
    config = Config(provider={"own": ProviderConfig(options={"baseURL": url, **options})})
    found = await register_providers(config, {}, keys_of(config.provider))
    [own] = [each for each in found if each.id == "own"]

    assert isinstance(own, HttpProvider)
    assert (own.endpoint.timeout_s, own.endpoint.first_event_s) == limits


async def test_an_answer_that_has_finished_is_whole_however_short_the_limit_on_silence_is(
    tmp_path: Path,
) -> None:
    answer = [*ms.text("all is well"), ms.chunk({}, "stop"), ms.Pause()]
    async with playing(tmp_path, answer, idle_s=IDLE_S) as setting:
        played = await setting.prompt()

    assert (played.text, played.error, len(played.requests)) == ("all is well", None, 1)
