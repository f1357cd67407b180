"""Texts in the order of time, without those of attempts that failed."""

import msgspec
import pytest

from pegboard.schema.event import Event, PartRemoved
from pegboard.schema.message import MessageTime
from pegboard.schema.part import Pending, StepFinishPart
from pegboard.schema.session import Tokens
from pegboard_plugins.cli.views import SettledTexts
from plugins.cli.events import SESSION, answer, call, event, said, text, updated

REMOVED = event(PartRemoved(session_id=SESSION, message_id="msg_2", part_id="prt_t"))
WHOLE = text("Hello.", end=2)
FINISHED = updated(
    StepFinishPart(
        id="prt_f",
        session_id=SESSION,
        message_id="msg_2",
        reason="stop",
        cost=0.0,
        tokens=Tokens(),
    )
)
ENDED = said(msgspec.structs.replace(answer(), time=MessageTime(created=1, completed=2)))


def settled(*events: Event) -> list[Event]:
    texts = SettledTexts()
    return [each for one in events for each in texts.settle(one)] + [*texts.rest()]


@pytest.mark.parametrize("last", [FINISHED, ENDED, call()])
def test_a_text_comes_before_what_makes_it_count(last: Event) -> None:
    assert settled(WHOLE, last) == [WHOLE, last]


def test_a_text_waits_while_its_attempt_may_fail() -> None:
    texts = SettledTexts()

    assert [*texts.settle(text("Hel")), *texts.settle(WHOLE)] == [text("Hel")]
    pending = call(Pending(input={}, raw=""))
    assert [*texts.settle(pending)] == [pending]
    assert [*texts.settle(said(answer("msg_9")))] == [said(answer("msg_9"))]


def test_a_text_that_is_removed_never_comes() -> None:
    assert settled(WHOLE, REMOVED, FINISHED) == [REMOVED, FINISHED]


def test_what_is_held_at_the_end_comes() -> None:
    assert settled(WHOLE) == [WHOLE]
