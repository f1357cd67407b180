"""A turn whose calls cannot be made ends by itself, and says which they were."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import ToolContext, hookimpl, tool
from pegboard.engine.finish import DENIED_STEPS, FRUITLESS_STEPS, PROMISED
from pegboard.engine.toolcall import DOOM_LOOP_CALLS
from pegboard.errors import ToolError
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, ToolInputStart
from pegboard.schema.event import PermissionAsked, SessionIdle, SessionWarned
from pegboard.schema.message import CallsFailure
from pegboard.schema.session import PermissionRequest, Verdict
from support.models.played import (
    HI,
    Answer,
    Played,
    ToolsPlugin,
    assistant,
    call,
    calls,
    heard,
    opened,
    text,
    texts,
)


@tool(requires=False)
async def ask_for(what: str, context: ToolContext) -> str:
    """Ask for something.

    Args:
        what: what.
    """
    await context.require("thing", patterns=(what,))
    return what


@tool
async def both(context: ToolContext) -> str:
    """Call a tool twice."""
    for what in ("no-1", "no-2"):
        try:
            await context.call_tool("ask_for", {"what": what})
        except ToolError:
            continue
    return "done"


@tool
async def fails() -> str:
    """Fail."""
    raise ToolError("by its own doing")


class DeniesNo:
    """A policy that denies what begins with `no`."""

    @hookimpl
    async def permission_ask(self, request: PermissionRequest) -> Verdict:
        no = any(name.startswith("no") for name in request.patterns)
        return Verdict(action="deny" if no else "allow")


class AsksAboutLoops:
    """A policy that asks for the same call once more, where nobody is there to be asked."""

    @hookimpl
    async def permission_ask(self, request: PermissionRequest) -> Verdict:
        return Verdict(action="ask" if request.permission == "doom_loop" else "allow")


class AsksForAll:
    """A policy that asks."""

    @hookimpl
    async def permission_ask(self) -> Verdict:
        return Verdict(action="ask")


def asked(name: str, **arguments: object) -> "Asked":
    return Asked(name, json.dumps(arguments))


class Asked:
    """An answer that makes the same kind of call each time, with another argument."""

    def __init__(self, name: str, arguments: str) -> None:
        self._name = name
        self._arguments = arguments
        self.times = 0

    async def __call__(self, _: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.times += 1
        arguments = self._arguments.replace("N", str(self.times))
        for event in calls(call(self._name, arguments, call_id=f"c{self.times}")):
            yield event


async def never_whole(_: ModelRequest) -> AsyncIterator[StreamEvent]:
    yield ToolInputStart("c", "ask_for")
    yield StreamFinish("tool-calls")


@pytest.mark.parametrize(
    ("answer", "steps", "named"),
    [
        (asked("nope", x="N"), FRUITLESS_STEPS, "nope (there is no tool 'nope'"),
        (Asked("ask_for", '{"what": "N'), FRUITLESS_STEPS, "ask_for (the arguments are not valid"),
        (asked("ask_for", when="N"), FRUITLESS_STEPS, "ask_for ("),
        (asked("invalid", tool="x", error="y"), FRUITLESS_STEPS, "invalid (there is no tool"),
        (never_whole, FRUITLESS_STEPS, "ask_for (The answer broke off"),
        (asked("ask_for", what="no-N"), DENIED_STEPS, "ask_for ("),
        (asked("both", x="N"), FRUITLESS_STEPS, "both ("),
        (asked("both"), DENIED_STEPS, "both ("),
    ],
)
async def test_calls_that_cannot_be_made_end_the_turn_with_their_names(
    tmp_path: Path, answer: Answer, steps: int, named: str
) -> None:
    provider = Played(answer)
    plugins = (DeniesNo(), ToolsPlugin(ask_for, both))
    async with opened(tmp_path, provider, *plugins, allow=False) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    error = assistant(turn).error
    assert isinstance(error, CallsFailure)
    assert named in error.data.message
    assert f"No call of the last {steps} steps could be made" in error.data.message
    assert len(provider.requests) == steps


async def test_a_loop_that_is_refused_ends_the_turn(tmp_path: Path) -> None:
    provider = Played(asked("ask_for", what="the same"))
    plugins = (AsksAboutLoops(), ToolsPlugin(ask_for))
    async with opened(tmp_path, provider, *plugins, allow=False) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert isinstance(assistant(turn).error, CallsFailure)
    assert len(provider.requests) == DOOM_LOOP_CALLS - 1 + DENIED_STEPS


@pytest.mark.parametrize("usable", [call("ask_for", '{"what": "this"}'), call("fails", "{}")])
async def test_a_call_that_is_made_lets_the_count_begin_anew(
    tmp_path: Path, usable: list[StreamEvent]
) -> None:
    bad = calls(call("nope", "{}", call_id="c1"))
    beside = calls(call("nope", "{}", call_id="c1"), usable)
    provider = Played(bad, bad, beside, bad, bad, text("I stop"))
    plugins = (DeniesNo(), ToolsPlugin(ask_for, fails))
    async with opened(tmp_path, provider, *plugins, allow=False) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert texts(turn) == ["I stop"]
    assert assistant(turn).error is None


async def test_many_bad_calls_of_one_step_are_one_step(tmp_path: Path) -> None:
    many = calls(*(call("nope", "{}", call_id=f"c{number}") for number in range(9)))
    async with opened(tmp_path, Played(many, text("I see")), ToolsPlugin(fails)) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert texts(turn) == ["I see"]


async def test_who_says_no_and_what_to_do_instead_ends_nothing(tmp_path: Path) -> None:
    steps = [
        calls(call("ask_for", f'{{"what": "{n}"}}', call_id=f"c{n}"))
        for n in range(DENIED_STEPS + 1)
    ]
    provider = Played(*steps, text("I see"))
    plugins = (AsksForAll(), ToolsPlugin(ask_for))
    async with opened(tmp_path, provider, *plugins, allow=False, interactive=True) as app:
        session = await app.create_session()
        async with app.subscribe() as events:
            prompt = asyncio.create_task(app.prompt(session.id, HI))
            async for event in events:
                match event.properties:
                    case PermissionAsked(request=request):
                        await app.answer_permission(request.id, "reject", message="something else")
                    case SessionIdle():
                        break
        turn = await prompt

    assert texts(turn) == ["I see"]


async def test_calls_that_were_promised_and_did_not_come_are_told_of(tmp_path: Path) -> None:
    provider = Played(text("Now I look.", reason="tool-calls"))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionIdle))
        )
        await asyncio.sleep(0)
        turn = await app.prompt(session.id, HI)
        events = await listening

    assert texts(turn) == ["Now I look."]
    assert len(provider.requests) == 1
    warnings = [e.properties for e in events if isinstance(e.properties, SessionWarned)]
    assert warnings == [SessionWarned(session_id=session.id, message=PROMISED)]
