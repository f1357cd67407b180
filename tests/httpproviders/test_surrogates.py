"""Letters that a server cuts between their two UTF-16 units."""

from pathlib import Path

import pytest

from pegboard.http.encoding import SurrogatePairs
from support.models import model_server as ms
from support.models.faulty_model import playing


def joined(*frames: bytes) -> list[bytes]:
    pairs = SurrogatePairs()
    return [each for frame in frames for each in pairs.join(frame)] + [*pairs.rest()]


@pytest.mark.parametrize(
    ("frames", "whole"),
    [
        ((rb'{"a":"x\ud83d"}', rb'{"a":"\ude00y"}'), (rb'{"a":"x"}', rb'{"a":"\ud83d\ude00y"}')),
        ((rb'{"a":"\uD83D"}', rb'{"a":"\uDE00"}'), (rb'{"a":""}', rb'{"a":"\uD83D\uDE00"}')),
        ((rb'{"a":"\\\ud83d"}', rb'{"a":"\ude00"}'), (rb'{"a":"\\"}', rb'{"a":"\ud83d\ude00"}')),
    ],
)
def test_two_halves_are_one_letter(frames: tuple[bytes, bytes], whole: tuple[bytes, bytes]) -> None:
    assert joined(*frames) == [*whole]


@pytest.mark.parametrize(
    "frames",
    [
        (rb'{"a":"\ud83d"}', rb'{"a":"y"}', rb'{"a":"\ude00"}'),
        (rb'{"a":"\\ud83d"}', rb'{"a":"\ude00"}'),
        (rb'{"a":"\ud83d\ude00"}', rb'{"a":"\ude00"}'),
        (rb'{"a":"\ud83d"}',),
    ],
)
def test_other_frames_stay(frames: tuple[bytes, ...]) -> None:
    assert joined(*frames) == [*frames]


def _frame(delta: str) -> bytes:
    return f'data: {{"choices":[{{"index":0,"delta":{{{delta}}}}}]}}\n\n'.encode()


async def test_texts_and_arguments_in_halves_are_whole(tmp_path: Path) -> None:
    def piece(arguments: str) -> bytes:
        return _frame(f'"tool_calls":[{{"index":0,"function":{{"arguments":"{arguments}"}}}}]')

    call = [
        *ms.tool_call("note", ""),
        piece('{\\"text\\": \\"smile \\ud83d'),
        piece('\\ude00 end\\"}'),
        *ms.finish("tool_calls"),
    ]
    text = [_frame('"content":"all \\ud83d"'), _frame('"content":"\\ude00 well"'), *ms.finish()]
    async with playing(tmp_path, call, text) as setting:
        played = await setting.prompt()

    assert (played.noted, played.text) == (["smile \U0001f600 end"], "all \U0001f600 well")
