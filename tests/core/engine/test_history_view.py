"""What the model sees of a session that was compacted, whatever happened in it."""

from hypothesis import given
from hypothesis import strategies as st

from pegboard.engine.compaction.trigger import next_request, prunable
from pegboard.engine.history import COMPACTION, History
from pegboard.providers import Call, ModelMessage, Result
from pegboard.schema.message import (
    AssistantMessage,
    MessagePath,
    MessageTime,
    TextData,
    Turn,
    UnknownFailure,
    UserMessage,
)
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.part import (
    CompactionPart,
    Completed,
    CompletedSpan,
    Failed,
    ModelChoice,
    Part,
    Pending,
    Running,
    TextPart,
    TimeSpan,
    ToolPart,
    ToolState,
)
from pegboard.schema.session import Tokens

MODEL = Model(id="m", provider_id="p", name="M", api=ModelApi(id="m"))
STATES: list[ToolState] = [
    Completed(input={}, output="o", title="", metadata={}, time=CompletedSpan(start=0, end=1)),
    Failed(input={}, error="e", time=TimeSpan(start=0, end=1)),
    Pending(input={}, raw=""),
    Running(input={}, time=TimeSpan(start=0)),
]


def user(place: int, *, asks: bool = False) -> Turn:
    message_id = f"msg_{place:04}"
    info = UserMessage(
        id=message_id,
        session_id="ses_1",
        time=MessageTime(created=0),
        agent="build",
        model=ModelChoice(provider_id="p", model_id="m"),
    )
    where = {"id": f"prt_{place:04}", "session_id": "ses_1", "message_id": message_id}
    part: Part = CompactionPart(**where, auto=True) if asks else TextPart(**where, text="hi")
    return Turn(info=info, parts=(part,))


def answer(place: int, states: list[ToolState], **more: object) -> Turn:
    message_id = f"msg_{place:04}"
    where = {"session_id": "ses_1", "message_id": message_id}
    info = AssistantMessage(
        id=message_id,
        session_id="ses_1",
        parent_id=f"msg_{place - 1:04}",
        model_id="m",
        provider_id="p",
        mode="build",
        agent="build",
        path=MessagePath(cwd="/", root="/"),
        cost=0,
        tokens=Tokens(input=place),
        time=MessageTime(created=0),
        **more,  # type: ignore[arg-type]  # fields of the message
    )
    calls = (
        ToolPart(
            id=f"prt_{place:04}_{number}",
            **where,
            call_id=f"c_{place}_{number}",
            tool="bash",
            state=state,
        )
        for number, state in enumerate(states)
    )
    said = TextPart(id=f"prt_{place:04}", **where, text=f"text {place}")
    return Turn(info=info, parts=(said, *calls))


@st.composite
def sessions(draw: st.DrawFn) -> list[Turn]:
    """Prompts, answers with calls, and compactions that came to something, or to nothing."""
    turns: list[Turn] = []
    for kind in draw(st.lists(st.sampled_from(["user", "answer", "done", "failed", "open"]))):
        place = len(turns)
        match kind:
            case "user":
                turns.append(user(place))
            case "answer":
                states = draw(st.lists(st.sampled_from(STATES), max_size=3))
                turns.append(answer(place, states, finish="tool-calls"))
            case "open":
                turns.append(user(place, asks=True))
            case "failed":
                failure = UnknownFailure(data=TextData(message="no"))
                turns += [
                    user(place, asks=True),
                    answer(place + 1, [], summary=True, error=failure),
                ]
            case _:
                ids = [turn.info.id for turn in turns]
                kept = draw(st.lists(st.sampled_from(ids), max_size=4)) if ids else []
                note = {COMPACTION: {"kept": kept}}
                turns += [
                    user(place, asks=True),
                    answer(place + 1, [], summary=True, finish="stop", metadata=note),
                ]
    return turns


def ids(messages: tuple[ModelMessage, ...], kind: type[Call] | type[Result]) -> list[str]:
    return [i.id for message in messages for i in message.content if isinstance(i, kind)]


@given(sessions())
def test_a_call_is_never_without_its_result_right_behind_it(turns: list[Turn]) -> None:
    messages = History(turns).messages(MODEL, History(turns).view())

    for place, message in enumerate(messages):
        calls = ids((message,), Call)
        assert not calls or ids((messages[place + 1],), Result) == calls
    assert ids(messages, Call) == ids(messages, Result)


@given(sessions())
def test_the_view_is_the_newest_summary_and_what_came_after(turns: list[Turn]) -> None:
    history = History(turns)
    view = history.view()
    summary = history.summary()
    open_ones = [t.info.id for t in view if isinstance(t.parts[0], CompactionPart)]

    assert len({turn.info.id for turn in view}) == len(view)
    if summary is None:
        assert open_ones == []
        return
    assert [turn.info.id for turn in view[:2]] == [open_ones[0], summary.info.id]
    assert len(open_ones) == 1
    later = [
        turn
        for turn in turns[turns.index(summary) + 1 :]
        if not isinstance(turn.parts[0], CompactionPart)
        and not (isinstance(turn.info, AssistantMessage) and turn.info.summary)
    ]
    assert list(view[len(view) - len(later) :]) == later


@given(sessions())
def test_turn_by_turn_gives_the_same_view(turns: list[Turn]) -> None:
    history = History([])
    for turn in turns:
        history.put(turn)

    assert history.view() == History(turns).view()


@given(sessions())
def test_what_was_used_before_a_summary_does_not_count(turns: list[Turn]) -> None:
    history = History(turns)
    summary = history.summary()
    start = turns.index(summary) + 1 if summary else 0
    used = [
        turn.info.tokens.input
        for turn in turns[start:]
        if isinstance(turn.info, AssistantMessage) and not turn.info.summary
    ]

    count = next_request(history, MODEL, history.view())

    size = sum(len(str(turn.parts)) for turn in turns)
    assert 0 <= count - (used[-1] if used else 0) <= size


@given(sessions())
def test_short_output_is_never_cleared(turns: list[Turn]) -> None:
    assert prunable(History(turns).view()) == ()
