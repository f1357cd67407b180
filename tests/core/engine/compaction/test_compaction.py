"""A session that outgrows the window goes on from a summary, loses nothing, and never loops."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard.engine.history import SUMMARISE
from pegboard.errors import ContextOverflowError
from pegboard.providers import Call, ModelRequest, Result, StreamEvent, StreamFinish, Usage
from pegboard.schema.message import AssistantMessage, ContextOverflowFailure
from pegboard.schema.model import Model, ModelApi, ModelLimit
from pegboard.schema.part import CompactionPart
from support.models.compacting import (
    FULL,
    HI,
    LONG,
    SMALL,
    Shortens,
    error_of,
    look,
    look_at,
    said,
    summaries,
    texts,
)
from support.models.played import Played, ToolsPlugin, opened, text


async def too_long(_: ModelRequest) -> AsyncIterator[StreamEvent]:
    raise ContextOverflowError("prompt is too long: 5000 tokens > 2000 maximum")
    yield StreamFinish("stop")


async def test_a_full_window_is_compacted_before_the_next_step(tmp_path: Path) -> None:
    provider = Played(look_at("a", FULL), text("the summary"), text("done"), model=SMALL)
    async with opened(tmp_path, provider, Shortens(), ToolsPlugin(look)) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, "look around")
        turns = await app.list_turns(session.id)

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
        *(True, "summaries", "summaries"),
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
        await app.prompt(session.id, "and now?")
        turns = await app.list_turns(session.id)

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
        turns = await app.list_turns(session.id)

    assert texts(answer) == ["done"]
    assert all(error_of(t) is None for t in turns if isinstance(t.info, AssistantMessage))
    assert len(turns) == 5


async def test_a_request_that_stays_too_long_ends_the_turn(tmp_path: Path) -> None:
    provider = Played(look_at("a", Usage()), too_long, text("the summary"), too_long, model=SMALL)
    async with opened(tmp_path, provider, Shortens(), ToolsPlugin(look)) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

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
        turns = await app.list_turns(session.id)

    assert isinstance(error_of(answer), ContextOverflowFailure)
    assert len(summaries(turns)) <= 2


async def test_auto_false_really_is_off(tmp_path: Path) -> None:
    provider = Played(look_at("a", FULL), look_at("b", FULL), too_long, model=SMALL)
    config = {"model": "played/m", "compaction": {"auto": False}}
    async with opened(tmp_path, provider, Shortens(), ToolsPlugin(look), config=config) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

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
        answer = await app.prompt(session.id, "look around")

    assert texts(answer) == ["done"]
    content = [item for message in provider.requests[-1].messages for item in message.content]
    assert [item.id for item in content if isinstance(item, Call)] == ["c_4"]
    assert [item.id for item in content if isinstance(item, Result)] == ["c_4"]
    assert said(provider.requests[-1])[-1] == ("user", "look around")
