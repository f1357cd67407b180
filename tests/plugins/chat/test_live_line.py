"""A line says what goes on while a turn runs; nothing wakes the chat while none does."""

import asyncio
import re

import pytest

from pegboard.schema.event import (
    Event,
    PartDelta,
    PartUpdated,
    Properties,
    SessionIdle,
    SessionStatusChanged,
)
from pegboard.schema.part import StepFinishPart
from pegboard.schema.session import Busy, CacheTokens, Retry, Tokens
from pegboard_plugins.chat.course import Course
from pegboard_plugins.chat.liveline import live_line
from pegboard_plugins.chat.turnprogress import compacted_text
from plugins.chat.conftest import Place
from plugins.chat.screen import ChatTerminal, chat, scripts
from plugins.chat.test_course import ASKED, SESSION, call
from plugins.cli.commands import CommandLine
from support.processes.processes import wake_ups

AT_REST_S = 4
SECONDS = re.compile(r"Waiting for the model · (\d+) s · Esc stops")
FEW_WAKE_UPS = 3
"""In `AT_REST_S`; a timer of a second would wake the chat at least once a second."""


class Clock:
    """A session whose time the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        self.course = Course(SESSION)
        for module in ("liveline", "turnprogress"):
            monkeypatch.setattr(f"pegboard_plugins.chat.{module}.time", lambda: self.now_s)

    def take(self, properties: Properties) -> str:
        """The line after an event."""
        for _ in self.course.take(Event(properties=properties)):
            pass
        return self.line

    @property
    def line(self) -> str:
        return self.drawn()

    def drawn(self, width: int = 80, *, is_connected: bool = True) -> str:
        line = live_line(self.course, width, is_connected=is_connected)
        return "".join(span.text for span in line)


def status(status: Busy | Retry) -> Properties:
    return SessionStatusChanged(session_id="ses_1", status=status)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_the_line_says_what_goes_on_and_for_how_long(clock: Clock) -> None:
    assert clock.line == ""
    assert clock.take(status(Busy())) == "Waiting for the model · 0 s · Esc stops"
    clock.now_s += 12
    assert clock.line == "Waiting for the model · 12 s · Esc stops"
    assert clock.take(PartUpdated(session_id="ses_1", part=call(), time=1)) == (
        f"Running {call().tool} · 12 s · Esc stops"
    )
    assert clock.take(SessionIdle(session_id="ses_1")) == ""
    assert clock.take(status(Busy())) == "Waiting for the model · 0 s · Esc stops"


def test_in_a_retry_the_line_has_the_time_that_is_left(clock: Clock) -> None:
    clock.take(status(Busy()))
    clock.take(status(Retry(attempt=2, message="overloaded", next=108_000)))
    clock.now_s += 5

    assert clock.line == "Retrying in 3 s (attempt 3): overloaded · 5 s · Esc stops"


def test_a_long_reason_leaves_room_for_how_to_stop(clock: Clock) -> None:
    clock.take(status(Busy()))
    clock.take(status(Retry(attempt=1, message="the answer broke off before its end", next=0)))

    assert clock.drawn(40).endswith("… · 0 s · Esc stops")
    assert len(clock.drawn(40)) == 40


def test_a_server_that_is_away_is_not_at_work(clock: Clock) -> None:
    clock.take(status(Busy()))
    clock.now_s += 7

    assert clock.drawn(is_connected=False) == (
        "No connection to the server, trying again · 7 s · Esc stops"
    )


def test_the_tokens_of_the_turn_are_counted(clock: Clock) -> None:
    def delta(letters: int) -> Properties:
        return PartDelta(
            session_id="ses_1",
            message_id="msg_1",
            part_id="prt_1",
            field="text",
            delta="x" * letters,
        )

    step = StepFinishPart(
        id="prt_2",
        session_id="ses_1",
        message_id="msg_1",
        reason="stop",
        cost=0.0,
        tokens=Tokens(output=1_000, reasoning=200),
    )
    clock.take(PartUpdated(session_id="ses_1", part=step, time=1))
    assert clock.take(status(Busy())) == "Waiting for the model · 0 s · Esc stops"
    assert " · 1 token · " in clock.take(delta(4))
    assert " · 100 tokens · " in clock.take(delta(396))
    second = StepFinishPart(**{**_fields(step), "id": "prt_3"})
    assert " · 1.2k tokens · " in clock.take(PartUpdated(session_id="ses_1", part=second, time=1))


def _fields(part: StepFinishPart) -> dict[str, object]:
    return {name: getattr(part, name) for name in part.__struct_fields__}


def test_a_compaction_tells_the_tokens_before_and_after() -> None:
    tokens = Tokens(input=3_000, output=323, cache=CacheTokens(read=869))

    assert compacted_text(tokens) == "compacted: 3,869 → 323 tokens"
    assert (
        compacted_text(None)
        == compacted_text(Tokens())
        == ("compacted: a summary replaces the history")
    )


def test_a_dialog_takes_the_place_of_the_line(clock: Clock) -> None:
    clock.take(status(Busy()))
    clock.course.asked(ASKED)

    assert clock.line == ""


async def test_the_seconds_go_on_while_nothing_else_happens(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard, wait={"text": "At last.", "delay_s": 60})

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("wait")
        times: set[str] = set()

        def counted() -> bool:
            times.update(SECONDS.findall("\n".join(terminal.shown)))
            return len(times) > 3

        await terminal.until(counted)
        terminal.press("escape")
        await terminal.see("· stopped")
        await terminal.gone("Esc stops")


async def test_nothing_wakes_the_chat_while_no_turn_runs(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("hello")
        await terminal.see("You said: hello")
        await terminal.gone("Esc stops")
        await _rests(terminal)


async def test_nothing_wakes_the_chat_while_a_dialog_waits(pegboard: CommandLine) -> None:
    asked = {"tool": "bash", "input": {"command": "echo asked", "description": "x"}}
    steps = [{"calls": [asked]}, {"text": "It was answered."}]
    scripts(pegboard, ask=steps, settings={"permission": {"bash": "ask"}})

    async with chat(pegboard) as terminal:
        await terminal.say("ask")
        await terminal.see_dialog("echo asked")
        await _rests(terminal)
        terminal.press("y")
        await terminal.see("It was answered.")


async def _rests(terminal: ChatTerminal) -> None:
    """Wait for a time without wake-ups and output, once what a turn leaves to do is done."""
    assert terminal.process is not None
    woken, written, pid = -FEW_WAKE_UPS, -1, terminal.process.pid
    async with asyncio.timeout(50):
        while wake_ups(pid) >= woken + FEW_WAKE_UPS or len(terminal.raw) != written:
            woken, written = wake_ups(pid), len(terminal.raw)
            await asyncio.sleep(AT_REST_S)
