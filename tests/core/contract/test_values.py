"""Frozen values become others."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from pegboard import evolve
from pegboard.providers import ModelMessage, Text
from support.plugins.hook_samples import PART, REQUEST, TURN
from support.sessions.session_views import view


@dataclass(frozen=True)
class Mine:
    """A value of a plugin."""

    size: int
    name: str = ""


def test_a_value_with_other_fields_is_another_one() -> None:
    part = evolve(PART, text="[gone]")
    turn = evolve(TURN, parts=(part,))

    assert (part.text, part.id, PART.text) == ("[gone]", PART.id, "hello")
    assert (turn.parts, turn.info) == ((part,), TURN.info)
    assert evolve(REQUEST, temperature=0.5).temperature == 0.5
    assert evolve(view(Path("/project")), depth=2).depth == 2
    assert evolve(Mine(1), size=2) == Mine(2)


def test_a_message_that_is_made_of_another_has_nothing_encoded() -> None:
    message = ModelMessage(role="user", content=(Text("polly"),))
    message.encoded["wire"] = b"polly"

    other = evolve(message, content=(Text("[gone]"),))

    assert (other.encoded, message.encoded) == ({}, {"wire": b"polly"})


@pytest.mark.parametrize(
    ("value", "wrong", "said"),
    [
        (PART, "txet", r"^TextPart has no field txet; did you mean text\?$"),
        (Mine(1), "zzz", r"^Mine has no field zzz \(it has size, name\)$"),
        ("text", "size", "^str is no struct and no dataclass"),
    ],
)
def test_a_field_that_there_is_not_names_the_nearest(value: object, wrong: str, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        evolve(value, **{wrong: 1})
