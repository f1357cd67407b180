"""A session that outgrows the window goes on from a summary, loses nothing, and never loops."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from pegboard import Compaction, CompactionRequest, hookimpl, tool
from pegboard.errors import ContextOverflowError, SessionBusyError
from pegboard.providers import Call, ModelRequest, Result, StreamEvent, StreamFinish, Text, Usage
from pegboard.schema.event import Event, SessionCompacted, SessionIdle
from pegboard.schema.message import AssistantMessage, ContextOverflowFailure, Turn
from pegboard.schema.model import Model, ModelApi, ModelLimit
from pegboard.schema.part import CompactionPart, TextPart
from pegboard.schema.prompt import TextInput
from pegboard.session.history import SUMMARISE
from played import Played, ToolsPlugin, call, calls, heard, opened, text

HI = (TextInput(text="hi"),)
SMALL = Model(
    id="m",
    provider_id="played",
    name="M",
    api=ModelApi(id="m"),
    limit=ModelLimit(context=2_000, output=500),
)
FULL = Usage(input=900, output=100, reasoning=100, cache_read=300, cache_write=200)
LONG = "word " * 1_000


class Shortens:
    """A compactor that asks the model once and keeps what it is told to keep."""

    def __init__(self, *, keep: Callable[[CompactionRequest], tuple[str, ...]] | None = None):
        self.requests: list[CompactionRequest] = []
        self._keep = keep

    @hookimpl
    async def register_compactors(self) -> list["Shortens"]:
        return [self]

    async def compact(self, request: CompactionRequest) -> Compaction:
        self.requests.append(request)
        summary = await request.ask(f"Summarise.\n{request.prompt}")
        kept = self._keep(request) if self._keep else ()
        return Compaction(summary=summary, pinned=("pinned text",), kept=kept)


class Answers:
    """A compactor that does what a function says."""

    def __init__(self, function: Callable[[CompactionRequest], object]) -> None:
        self._function = function

    @hookimpl
    async def register_compactors(self) -> list["Answers"]:
        return [self]

    async def compact(self, request: CompactionRequest) -> object:
        return self._function(request)


@tool
async def look(place: str) -> str:
    """Look somewhere.

    Args:
        place: where.
    """
    return f"{place}: " + LONG


def look_at(place: str, usage: Usage) -> list[StreamEvent]:
    return [
        *call("look", f'{{"place": "{place}"}}', call_id=f"c_{place}"),
        StreamFinish("tool-calls", usage),
    ]


def error_of(turn: Turn) -> object:
    assert isinstance(turn.info, AssistantMessage)
    return turn.info.error


def texts(turn: Turn) -> list[str]:
    return [part.text for part in turn.parts if isinstance(part, TextPart)]


def said(request: ModelRequest) -> list[tuple[str, str]]:
    return [
        (message.role, item.text)
        for message in request.messages
        for item in message.content
        if isinstance(item, Text)
    ]


def summaries(turns: Sequence[Turn]) -> list[AssistantMessage]:
    return [t.info for t in turns if isinstance(t.info, AssistantMessage) and t.info.summary]


async def too_long(_: ModelRequest) -> AsyncIterator[StreamEvent]:
    raise ContextOverflowError("prompt is too long: 5000 tokens > 2000 maximum")
    yield StreamFinish("stop")


async def test_a_full_window_is_compacted_before_the_next_step(tmp_path: Path) -> None:
    provider = Played(look_at("a", FULL), text("the summary"), text("done"), model=SMALL)
    async with opened(tmp_path, provider, Shortens(), ToolsPlugin(look)) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, (TextInput(text="look around"),))
        turns = await app.turns(session.id)

    assert texts(answer) == ["done"]
    assert said(provider.requests[2]) == [
        ("user", SUMMARISE),
        ("user", "pinned text"),
        ("assistant", "the summary"),
        ("user", "look around"),
    ]
    user, step, request, summary, last = turns
    assert [part.auto for part in request.parts if isinstance(part, CompactionPart)] == [True]
    assert isinstance(summary.info, AssistantMessage)
    assert (summary.info.summary, summary.info.mode, summary.info.agent, summary.info.finish) == (
        *(True, "compaction", "compaction"),
        "stop",
    )
    assert summary.info.parent_id == request.info.id
    assert isinstance(last.info, AssistantMessage)
    assert last.info.parent_id == user.info.id
    assert any(LONG in str(part) for part in step.parts)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input=1_501),
        Usage(output=1_501),
        Usage(reasoning=1_501),
        Usage(cache_read=1_501),
        Usage(cache_write=1_501),
    ],
)
async def test_every_kind_of_token_counts(tmp_path: Path, usage: Usage) -> None:
    provider = Played(text(LONG, usage=usage), text("summary"), text("two"), model=SMALL)
    async with opened(tmp_path, provider, Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await app.prompt(session.id, (TextInput(text="and now?"),))
        turns = await app.turns(session.id)

    assert len(provider.requests) == 3
    assert len(summaries(turns)) == 1


async def test_a_provider_that_says_too_long_is_asked_again_with_less(tmp_path: Path) -> None:
    unknown = Model(id="m", provider_id="played", name="M", api=ModelApi(id="m"))
    provider = Played(
        look_at("a", Usage()), too_long, text("the summary"), text("done"), model=unknown
    )
    async with opened(tmp_path, provider, Shortens(), ToolsPlugin(look)) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, HI)
        turns = await app.turns(session.id)

    assert texts(answer) == ["done"]
    assert all(error_of(t) is None for t in turns if isinstance(t.info, AssistantMessage))
    assert len(turns) == 5


async def test_a_request_that_stays_too_long_ends_the_turn(tmp_path: Path) -> None:
    provider = Played(look_at("a", Usage()), too_long, text("the summary"), too_long, model=SMALL)
    async with opened(tmp_path, provider, Shortens(), ToolsPlugin(look)) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, HI)
        turns = await app.turns(session.id)

    assert isinstance(error_of(answer), ContextOverflowFailure)
    assert len(provider.requests) == 4
    assert len(summaries(turns)) == 1


async def test_a_compaction_that_gains_too_little_stops_the_turn(tmp_path: Path) -> None:
    keeps_all = Shortens(keep=lambda request: tuple(t.info.id for t in request.session.turns))
    provider = Played(look_at("a", FULL), text("the summary"), model=SMALL)
    async with opened(tmp_path, provider, keeps_all, ToolsPlugin(look)) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, HI)
        assert len(provider.requests) == 2
        failure = error_of(answer)
        assert isinstance(failure, ContextOverflowFailure)
        assert "could not be made short enough" in failure.data.message

        provider = Played(text("on we go"))
        assert (await app.session(session.id)).time.compacting is None


async def test_compactions_without_progress_never_repeat(tmp_path: Path) -> None:
    steps = [look_at(str(number), FULL) for number in range(50)]
    answers = [answer for step in steps for answer in (step, text("the summary"))]
    keep = Shortens(keep=lambda request: tuple(t.info.id for t in request.session.turns[-1:]))
    provider = Played(*answers, model=SMALL)
    async with opened(tmp_path, provider, keep, ToolsPlugin(look)) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, HI)
        turns = await app.turns(session.id)

    assert isinstance(error_of(answer), ContextOverflowFailure)
    assert len(summaries(turns)) <= 2


async def test_auto_false_really_is_off(tmp_path: Path) -> None:
    provider = Played(look_at("a", FULL), look_at("b", FULL), too_long, model=SMALL)
    config = {"model": "played/m", "compaction": {"auto": False}}
    async with opened(tmp_path, provider, Shortens(), ToolsPlugin(look), config=config) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, HI)
        turns = await app.turns(session.id)

    assert isinstance(error_of(answer), ContextOverflowFailure)
    assert summaries(turns) == []
    assert len(provider.requests) == 3


async def test_without_a_compactor_the_error_is_the_providers(tmp_path: Path) -> None:
    provider = Played(text("one", usage=FULL), too_long, model=SMALL)
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        answer = await app.prompt(session.id, HI)

    failure = error_of(answer)
    assert isinstance(failure, ContextOverflowFailure)
    assert "5000 tokens > 2000" in failure.data.message


async def test_the_user_can_ask_for_it_and_the_session_goes_on_from_there(tmp_path: Path) -> None:
    provider = Played(text("hello"), text("the summary"), text("again"))
    async with opened(tmp_path, provider, Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        events: list[Event] = []
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(
                heard(app, lambda event: isinstance(event.properties, SessionIdle))
            )
            await asyncio.sleep(0)
            turn = await app.summarize(session.id)
        events = listening.result()
        after = await app.session(session.id)
        await app.prompt(session.id, (TextInput(text="next"),))
        turns = await app.turns(session.id)

    assert texts(turn) == ["the summary"]
    assert [e.type for e in events if isinstance(e.properties, SessionCompacted)] == [
        "session.compacted"
    ]
    assert (after.agent, after.time.compacting) == ("build", None)
    assert len(turns) == 6
    assert said(provider.requests[2]) == [
        ("user", SUMMARISE),
        ("user", "pinned text"),
        ("assistant", "the summary"),
        ("user", "next"),
    ]


async def test_a_running_session_is_not_summarised(tmp_path: Path) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        started.set()
        await go.wait()
        yield StreamFinish("stop")

    async with opened(tmp_path, Played(slow), Shortens()) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await started.wait()
        with pytest.raises(SessionBusyError):
            await app.summarize(session.id)
        go.set()
        await prompt


async def test_a_prompt_that_comes_meanwhile_is_answered_behind_the_summary(
    tmp_path: Path,
) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        started.set()
        await go.wait()
        for event in text("the summary"):
            yield event

    provider = Played(text("hello"), slow, text("yes"))
    async with opened(tmp_path, provider, Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        summing = asyncio.create_task(app.summarize(session.id))
        await started.wait()
        asked = asyncio.create_task(app.prompt(session.id, (TextInput(text="meanwhile"),)))
        while len(await app.turns(session.id)) < 5:  # noqa: ASYNC110 - the database has no event
            await asyncio.sleep(0.01)
        go.set()
        await asyncio.gather(summing, asked)

    assert said(provider.requests[2])[-2:] == [("assistant", "the summary"), ("user", "meanwhile")]


async def test_an_abort_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        started.set()
        await asyncio.sleep(60)
        yield StreamFinish("stop")

    provider = Played(text("hello"), slow, text("again"))
    async with opened(tmp_path, provider, Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        summing = asyncio.create_task(app.summarize(session.id))
        await started.wait()
        await app.abort(session.id)
        assert error_of(await summing) is not None
        assert (await app.session(session.id)).time.compacting is None
        await app.prompt(session.id, (TextInput(text="next"),))

    assert said(provider.requests[2]) == [("user", "hi"), ("assistant", "hello"), ("user", "next")]


def raises(_: CompactionRequest) -> object:
    raise ZeroDivisionError("oh")


@pytest.mark.parametrize(
    ("function", "says"),
    [(raises, "oh"), (lambda _: "a text", "answered with 'a text'"), (lambda _: None, "None")],
)
async def test_a_broken_compactor_is_an_error_of_the_summary(
    tmp_path: Path, function: Callable[[CompactionRequest], object], says: str
) -> None:
    async with opened(tmp_path, Played(text("hello")), Answers(function)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turn = await app.summarize(session.id)
        assert says in str(error_of(turn))
        assert texts(await app.prompt(session.id, HI)) == ["hello"]


async def test_a_compactor_needs_no_model(tmp_path: Path) -> None:
    function = Answers(lambda _: Compaction(summary="nothing much happened"))
    provider = Played(text("hello"), text("again"))
    async with opened(tmp_path, provider, function) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turn = await app.summarize(session.id)
        await app.prompt(session.id, (TextInput(text="next"),))

    assert texts(turn) == ["nothing much happened"]
    assert said(provider.requests[1])[1:] == [
        ("assistant", "nothing much happened"),
        ("user", "next"),
    ]


async def test_the_newest_compactor_acts_with_the_prompt_that_plugins_have_changed(
    tmp_path: Path,
) -> None:
    old, new = Shortens(), Shortens()

    class Shorter:
        @hookimpl
        async def session_compacting(self, prompt: str) -> str:
            return prompt + " In one sentence."

    async with opened(tmp_path, Played(text("hello")), old, new, Shorter()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await app.summarize(session.id)

    assert old.requests == []
    assert new.requests[0].prompt.endswith(" In one sentence.")


async def test_a_summary_is_still_the_beginning_when_the_app_opens_again(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("hello"), text("the summary")), Shortens()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await app.summarize(session.id)

    provider = Played(text("again"))
    async with opened(tmp_path, provider) as app:
        await app.prompt(session.id, (TextInput(text="next"),))

    assert said(provider.requests[0])[2:] == [("assistant", "the summary"), ("user", "next")]


async def test_what_is_kept_comes_after_the_summary_with_all_its_results(tmp_path: Path) -> None:
    keep = Shortens(keep=lambda request: (request.session.turns[-1].info.id,))
    big = Model(
        id="m",
        provider_id="played",
        name="M",
        api=ModelApi(id="m"),
        limit=ModelLimit(context=20_000, output=1_000),
    )
    steps = [look_at(str(number), Usage(input=5_000 * number)) for number in range(5)]
    provider = Played(*steps, text("the summary"), text("done"), model=big)
    async with opened(tmp_path, provider, keep, ToolsPlugin(look)) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, (TextInput(text="look around"),))

    assert texts(answer) == ["done"]
    content = [item for message in provider.requests[-1].messages for item in message.content]
    assert [item.id for item in content if isinstance(item, Call)] == ["c_4"]
    assert [item.id for item in content if isinstance(item, Result)] == ["c_4"]
    assert said(provider.requests[-1])[-1] == ("user", "look around")


async def test_calls_are_refused_while_a_summary_is_written(tmp_path: Path) -> None:
    provider = Played(
        text("hello"), calls(call("look", '{"place": "x"}')), text("again"), model=SMALL
    )
    async with opened(tmp_path, provider, Shortens(), ToolsPlugin(look)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turn = await app.summarize(session.id)

    assert provider.requests[1].tools == ()
    assert LONG not in str(turn)
