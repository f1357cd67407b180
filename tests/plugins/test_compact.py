"""The built-in compactor: what it keeps, what it pins, and how it fits any window."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pegboard import ToolContext, ToolResult, tool
from pegboard.compaction import CompactionRequest
from pegboard.engine.history import SUMMARISE
from pegboard.errors import ContextOverflowError
from pegboard.providers import Call, ModelRequest, Result, StreamEvent, StreamFinish, Usage
from pegboard.schema.message import ContextOverflowFailure
from pegboard.schema.model import ModelLimit
from pegboard.schema.session import Todo
from pegboard.storage.changes import PutTodos
from pegboard_plugins import compact
from pegboard_plugins.compact import Summary, chunks, register_agents, shortened
from support.models.compacting import FULL, LONG, SMALL, error_of, look, look_at, said, summaries
from support.models.played import Played, ToolsPlugin, opened, text
from support.sessions.session_views import view

WIDE = replace(SMALL, limit=ModelLimit(context=40_000, output=4_000))
FILE = "/p/lib/AGENTS.md"


def rules(session_id: str) -> str:
    return f'<instructions session="{session_id}" from="{FILE}">\nNo tabs.\n</instructions>'


@tool
async def read(context: ToolContext, number: int) -> ToolResult:
    """Read.

    Args:
        number: which file.
    """
    return ToolResult(
        output=f"file {number} {LONG}\n\n{rules(context.session.id)}", metadata={"loaded": [FILE]}
    )


async def test_first_prompt_todos_instructions_and_last_calls_stay_word_for_word(
    tmp_path: Path,
) -> None:
    reads = [
        [
            *look_at(str(number), Usage())[:-1],
            StreamFinish("tool-calls", Usage(input=8_000 * number)),
        ]
        for number in range(6)
    ]
    for answer in reads:
        answer[0] = replace(answer[0], name="read")  # type: ignore[type-var]  # a ToolInputStart
        answer[1] = replace(answer[1], name="read", input='{"number": 1}')  # type: ignore[call-arg]
    provider = Played(text("hello"), *reads, text("the summary"), text("done"), model=WIDE)
    async with opened(tmp_path, provider, compact, ToolsPlugin(read)) as app:
        session = await app.create_session()
        await app.prompt(session.id, "the very first wish")
        todos = (
            Todo(content="open one", status="pending", id="1"),
            Todo(content="closed one", status="completed", id="2"),
        )
        await app.storage.commit(PutTodos(session.id, todos))
        await app.prompt(session.id, "read all of it")

    asked, sent = provider.requests[-2:]
    assert "summarizing conversations" in asked.system[0]
    assert asked.tools == ()
    assert said(sent) == [
        ("user", SUMMARISE),
        ("user", "The user's first request, word for word:\nthe very first wish"),
        ("user", rules(session.id)),
        ("user", "The open todos:\n- [pending] open one (priority: medium)"),
        ("assistant", "the summary"),
        ("user", "read all of it"),
    ]
    content = [item for message in sent.messages for item in message.content]
    kept = [item.id for item in content if isinstance(item, Call)]
    assert kept == [item.id for item in content if isinstance(item, Result)]
    assert kept == ["c_4", "c_5"]


async def test_a_second_compaction_pins_the_same_again(tmp_path: Path) -> None:
    big = Usage(input=40_000)
    provider = Played(
        text("hello " + LONG),
        text(LONG, usage=big),
        text("summary one"),
        text(LONG, usage=big),
        text("summary two"),
        text("done"),
        model=WIDE,
    )
    async with opened(tmp_path, provider, compact) as app:
        session = await app.create_session()
        for wish in ("the very first wish", "second", "third", "fourth"):
            await app.prompt(session.id, wish)
        turns = await app.list_turns(session.id)

    assert [answer.error for answer in summaries(turns)] == [None, None]
    assert said(provider.requests[-1]) == [
        ("user", SUMMARISE),
        ("user", "The user's first request, word for word:\nthe very first wish"),
        ("assistant", "summary two"),
        *said(provider.requests[-1])[3:-1],
        ("user", "fourth"),
    ]
    assert "Summary of what came before] summary one" in str(provider.requests[4].messages)


async def test_a_history_beyond_the_window_is_summarised_piece_by_piece(tmp_path: Path) -> None:
    longest: list[int] = []

    async def refuses_long_texts(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        size = sum(len(piece) for _, piece in said(request))
        longest.append(size)
        if size > 4 * 8_000:
            raise ContextOverflowError("too long")
        for event in text(f"summary {len(longest)}"):
            yield event

    provider = Played(*[text(LONG * 4)] * 12, refuses_long_texts)
    async with opened(tmp_path, provider, compact) as app:
        session = await app.create_session()
        for number in range(12):
            await app.prompt(session.id, f"wish {number}")
        turn = await app.summarize(session.id)
        turns = await app.list_turns(session.id)

    assert error_of(turn) is None
    asked = provider.requests[12:]
    assert len(asked) > 3
    everything = "".join(piece for request in asked for _, piece in said(request))
    assert all(f"[User] wish {number}\n" in everything for number in range(12))
    assert "Summary of what came before:\nsummary" in said(asked[-1])[0][1]
    assert summaries(turns)[-1].metadata is not None


async def test_a_prompt_that_is_too_long_by_itself_stops_the_turn(tmp_path: Path) -> None:
    async def too_long(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        raise ContextOverflowError("too long")
        yield StreamFinish("stop")

    provider = Played(text("hello"), too_long, text("the summary"), too_long, model=SMALL)
    async with opened(tmp_path, provider, compact) as app:
        session = await app.create_session()
        await app.prompt(session.id, "hi")
        answer = await app.prompt(session.id, LONG * 10)

    assert isinstance(error_of(answer), ContextOverflowFailure)
    assert len(provider.requests) <= 7


async def test_calls_in_the_middle_of_a_turn_go_on_after_it(tmp_path: Path) -> None:
    provider = Played(
        look_at("a", Usage(input=10)),
        look_at("b", FULL),
        text("the summary"),
        text("done"),
        model=SMALL,
    )
    async with opened(tmp_path, provider, compact, ToolsPlugin(look)) as app:
        session = await app.create_session()
        answer = await app.prompt(session.id, "look around")

    assert error_of(answer) is None
    assert said(provider.requests[-1])[-1] == ("user", "look around")
    transcript = said(provider.requests[2])[0][1]
    assert '[Call of look] {"place": "a"}' in transcript
    assert "[Result] a: word" in transcript


async def test_a_session_without_a_word_can_be_summarised(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("nothing yet")), compact) as app:
        session = await app.create_session()
        assert error_of(await app.summarize(session.id)) is None


async def test_the_agent_is_hidden_and_may_do_nothing() -> None:
    [agent] = await register_agents()

    assert (agent.name, agent.hidden, agent.native) == ("compaction", True, True)
    assert [(rule.permission, rule.action) for rule in agent.permission] == [("*", "deny")]


async def test_it_gives_up_when_not_even_a_small_piece_fits(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(prompt: str) -> str:
        asked.append(prompt)
        raise ContextOverflowError("too long")

    request = CompactionRequest(
        session=view(tmp_path),
        first=None,
        answering=(),
        todos=(),
        prompt="Summarise.",
        room_tokens=1_000,
        keep_tokens=0,
        auto=True,
        ask=ask,
    )
    with pytest.raises(ContextOverflowError):
        await Summary().compact(request)

    assert len(asked) == 4


@given(st.lists(st.text(max_size=50)), st.integers(min_value=100, max_value=200))
def test_chunks_have_room_and_lose_nothing_that_fits(pieces: list[str], size: int) -> None:
    made = list(chunks(pieces, size))

    assert all(len(chunk) <= size + chunk.count("\n") for chunk in made)
    if all(len(piece) <= size for piece in pieces):
        assert "\n".join(made) == "\n".join(pieces)


@given(st.text(max_size=500), st.integers(min_value=100, max_value=300))
def test_a_shortened_text_keeps_both_ends(value: str, limit: int) -> None:
    short = shortened(value, limit)

    assert len(short) <= limit
    assert short == value or (value[0] == short[0] and value[-1] == short[-1])
