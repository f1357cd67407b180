"""What the vendors' words for the end of an answer mean."""

from pathlib import Path

import pytest

from pegboard.http.finishwords import FINISH_WORDS
from pegboard.providers import FinishReason
from pegboard.schema.event import SessionIdle, SessionWarned
from pegboard.schema.message import APIFailure, ContentFilterFailure, OutputLengthFailure
from pegboard.unstable import finish_of
from support.models import model_server as ms
from support.models.faulty_model import playing


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("COMPLETE", "stop"),
        ("model_length", "length"),
        ("MAX_TOKENS", "length"),
        ("sensitive", "content-filter"),
        ("guardrail_intervened", "content-filter"),
        ("network_error", "error"),
        ("cancelled", "error"),
        ("insufficient_system_resource", "error"),
        ("abort", "error"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("tool_use", "tool-calls"),
        ("pause_turn", "other"),
        ("sunset", "other"),
        (None, "unknown"),
    ],
)
def test_a_vendor_s_word_has_one_reason(word: object, reason: FinishReason) -> None:
    assert finish_of(word)[0] == reason


def test_no_word_stands_for_two_reasons() -> None:
    words = [word for group in FINISH_WORDS.values() for word in group]

    assert len(words) == len(set(words))
    assert words == [word.lower() for word in words]


def test_a_word_that_is_not_known_has_a_note_and_an_error_its_word() -> None:
    assert "'sunset'" in finish_of("sunset")[1]
    assert "'network_error'" in finish_of("network_error")[1]
    assert finish_of("stop")[1] == finish_of("length")[1] == ""


@pytest.mark.parametrize(
    ("word", "failure"),
    [("model_length", OutputLengthFailure), ("guardrail_intervened", ContentFilterFailure)],
)
async def test_a_text_that_was_cut_ends_in_a_failure(
    tmp_path: Path, word: str, failure: type
) -> None:
    async with playing(tmp_path, [ms.text("half"), ms.finish(word)]) as setting:
        played = await setting.prompt()

    assert isinstance(played.error, failure)
    assert len(played.requests) == 1


async def test_an_error_behind_text_is_tried_again_and_names_the_word(tmp_path: Path) -> None:
    answer = [ms.text("half"), ms.finish("network_error")]
    async with playing(tmp_path, answer, retry={"attempts": 2}) as setting:
        played = await setting.prompt()

    assert isinstance(played.error, APIFailure)
    assert played.message.startswith("test: the server ended the answer with 'network_error'")
    assert len(played.requests) == 2


async def test_a_word_that_is_not_known_warns_the_user(tmp_path: Path) -> None:
    answer = [ms.text("half"), ms.finish("sunset")]
    async with playing(tmp_path, answer) as setting, setting.app.subscribe(limit=1000) as events:
        played = await setting.prompt()
        properties = []
        async for event in events:
            properties.append(event.properties)
            if isinstance(event.properties, SessionIdle):
                break

    assert (played.error, played.text) == (None, "half")
    [warning] = [each.message for each in properties if isinstance(each, SessionWarned)]
    assert "'sunset'" in warning
