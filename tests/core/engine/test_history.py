"""What a model sees of a session."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pegboard.engine.history import CLEARED, GO_ON, INTERRUPTED, History, as_seen, convert
from pegboard.providers import Call, Media, ModelMessage, Reasoning, Result, Text
from pegboard.schema.message import (
    AbortedFailure,
    AssistantMessage,
    Failure,
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
    FilePart,
    ModelChoice,
    Part,
    Pending,
    ReasoningPart,
    Running,
    StepStartPart,
    TextPart,
    TimeSpan,
    ToolPart,
    ToolState,
)
from pegboard.schema.session import Tokens
from pegboard.storage.rows import INTERRUPTED_CALL, NEVER_RAN

MODEL = Model(id="m", provider_id="p", name="M", api=ModelApi(id="m"))
OTHER = Model(id="n", provider_id="p", name="N", api=ModelApi(id="n"))
PLACE = {"session_id": "ses_1", "message_id": "msg_1"}


def user(*parts: Part, message_id: str = "msg_0") -> Turn:
    info = UserMessage(
        id=message_id,
        session_id="ses_1",
        time=MessageTime(created=0),
        agent="build",
        model=ModelChoice(provider_id="p", model_id="m"),
    )
    return Turn(info=info, parts=parts)


def answer(*parts: Part, error: Failure | None = None) -> Turn:
    info = AssistantMessage(
        id="msg_1",
        session_id="ses_1",
        parent_id="msg_0",
        model_id="m",
        provider_id="p",
        mode="build",
        agent="build",
        path=MessagePath(cwd="/", root="/"),
        cost=0,
        tokens=Tokens(),
        time=MessageTime(created=0),
        error=error,
    )
    return Turn(info=info, parts=parts)


def said(text: str, **more: object) -> TextPart:
    return TextPart(id="prt_1", **PLACE, text=text, **more)


def tool(state: ToolState, call_id: str = "c") -> ToolPart:
    return ToolPart(id="prt_2", **PLACE, call_id=call_id, tool="bash", state=state)


def done(
    output: str, *, compacted: int | None = None, files: tuple[FilePart, ...] = ()
) -> Completed:
    return Completed(
        input={"command": "ls"},
        output=output,
        title="",
        metadata={},
        time=CompletedSpan(start=0, end=1, compacted=compacted),
        attachments=files,
    )


def test_a_user_message_is_its_texts_and_media() -> None:
    image = FilePart(id="prt_3", **PLACE, mime="image/png", url="data:image/png;base64,AA==")
    listed = FilePart(id="prt_4", **PLACE, mime="text/plain", url="file:///a.txt")

    assert convert(user(said("look"), said("", ignored=False), image, listed), MODEL) == (
        ModelMessage(
            role="user",
            content=(
                Text(text="look"),
                Media(mime="image/png", url="data:image/png;base64,AA=="),
            ),
        ),
    )


def test_ignored_and_empty_messages_are_not_sent() -> None:
    assert convert(user(said("note to self", ignored=True)), MODEL) == ()
    assert convert(answer(StepStartPart(id="prt_5", **PLACE)), MODEL) == ()


def test_an_answer_is_what_was_said_and_then_the_results() -> None:
    thought = ReasoningPart(
        id="prt_6", **PLACE, text="hm", time=TimeSpan(start=0), metadata={"signature": "s"}
    )

    assert convert(answer(thought, said("I look."), tool(done("a.txt"))), MODEL) == (
        ModelMessage(
            role="assistant",
            content=(
                Reasoning(text="hm", metadata={"signature": "s"}),
                Text(text="I look."),
                Call(id="c", name="bash", input={"command": "ls"}),
            ),
        ),
        ModelMessage(role="tool", content=(Result(id="c", name="bash", output="a.txt"),)),
    )


def test_metadata_of_another_model_is_left_out() -> None:
    thought = ReasoningPart(
        id="prt_6", **PLACE, text="hm", time=TimeSpan(start=0), metadata={"signature": "s"}
    )

    [message] = convert(answer(thought), OTHER)

    assert message.content == (Reasoning(text="hm"),)


def test_every_way_a_call_can_stand_has_a_result() -> None:
    states = {
        "a": (done("long ago", compacted=5), CLEARED, False),
        "b": (
            Failed(input={}, error="no such file", time=TimeSpan(start=0, end=1)),
            "no such file",
            True,
        ),
        "c": (Pending(input={}, raw=""), INTERRUPTED, True),
        "d": (Running(input={}, time=TimeSpan(start=0)), INTERRUPTED, True),
    }

    _, results = convert(
        answer(*(tool(state, call_id) for call_id, (state, _, _) in states.items())), MODEL
    )

    assert results.content == tuple(
        Result(id=call_id, name="bash", output=text, is_error=error)
        for call_id, (_, text, error) in states.items()
    )


def test_a_failed_answer_is_left_out_but_an_aborted_one_with_text_is_kept() -> None:
    failed = UnknownFailure(data=TextData(message="no"))
    aborted = AbortedFailure(data=TextData(message="stop"))

    assert convert(answer(said("half"), error=failed), MODEL) == ()
    assert convert(answer(StepStartPart(id="prt_5", **PLACE), error=aborted), MODEL) == ()
    assert len(convert(answer(said("half"), error=aborted), MODEL)) == 1


def test_what_a_dead_process_was_doing_is_told() -> None:
    died = UnknownFailure(data=TextData(message="interrupted"))
    ran = Failed(input={}, error=INTERRUPTED_CALL, time=TimeSpan(start=0, end=1))
    never_ran = Failed(input={}, error=NEVER_RAN, time=TimeSpan(start=0, end=1))

    _, results = convert(answer(tool(ran), error=died), MODEL)

    assert results.content == (Result(id="c", name="bash", output=INTERRUPTED_CALL, is_error=True),)
    assert convert(answer(tool(never_ran), error=died), MODEL) == ()


def test_a_turn_is_converted_once_and_again_when_it_is_different() -> None:
    history = History([user(said("one")), answer(said("two"))])
    first = history.messages(MODEL, history.turns)
    second = history.messages(MODEL, history.turns)

    assert all(a is b for a, b in zip(first, second, strict=True))

    history.put(answer(said("three")))
    third = history.messages(MODEL, history.turns)
    assert third[0] is first[0]
    assert third[1].content == (Text(text="three"),)


def test_the_last_word_is_never_the_models_and_the_prefix_stays() -> None:
    history = History([user(said("one")), answer(said("two"))])
    first = history.messages(MODEL, history.turns)

    later = (*history.turns, answer(said("three")))
    second = history.messages(MODEL, later)

    assert [message.role for message in second] == ["user", *("assistant", "user") * 2]
    assert first[-1].content == (Text(text=GO_ON),)
    assert all(a is b for a, b in zip(first, second, strict=False))


@given(st.lists(st.tuples(st.sampled_from("uaxd"), st.integers(0, 5)), max_size=20))
def test_what_is_known_of_the_last_request_changes_nothing(steps: list[tuple[str, int]]) -> None:
    history = History([])
    for number, (kind, place) in enumerate(steps):
        message_id = f"msg_{'a' if kind == 'a' else 'u'}{place}"
        match kind:
            case "u":
                history.put(user(said(f"{number}"), message_id=message_id))
            case "a":
                turn = answer(said(f"{number}"))
                history.put(Turn(info=replace(turn.info, id=message_id), parts=turn.parts))
            case "x":
                history.put(user(message_id=message_id))
            case _:
                history.drop(message_id)

        afresh = History(history.turns)
        model = OTHER if place == 0 else MODEL
        assert history.messages(model, history.turns) == afresh.messages(model, history.turns)
        assert list(history.users()) == list(afresh.users())


def test_a_turn_keeps_its_place_whatever_its_id() -> None:
    history = History([user(said("first"), message_id="msg_zzz")])
    history.put(answer(said("answer")))
    history.put(user(said("second"), message_id="msg_000"))

    users = [(place, turn.info.id) for place, turn in history.users()]
    assert users == [(2, "msg_000"), (0, "msg_zzz")]


STATES = st.sampled_from(
    [
        done("x"),
        Failed(input={}, error="e", time=TimeSpan(start=0, end=1)),
        Pending(input={}, raw=""),
        Running(input={}, time=TimeSpan(start=0)),
    ]
)


@given(st.lists(st.lists(STATES, max_size=4), max_size=5), st.booleans())
def test_no_call_is_ever_without_its_result(steps: list[list[ToolState]], aborted: bool) -> None:
    error = AbortedFailure(data=TextData(message="")) if aborted else None
    for step in steps:
        parts = [tool(state, f"c{number}") for number, state in enumerate(step)]
        messages = convert(answer(*parts, error=error), MODEL)
        made = [
            item.id for message in messages for item in message.content if isinstance(item, Call)
        ]
        answered = [
            item.id for message in messages for item in message.content if isinstance(item, Result)
        ]
        assert made == answered


def ids(turns: list[Turn]) -> list[str]:
    return [turn.info.id for turn in turns]


def reply(message_id: str, to: str) -> Turn:
    info = answer().info
    assert isinstance(info, AssistantMessage)
    return Turn(info=replace(info, id=message_id, parent_id=to), parts=())


def test_an_answer_that_began_before_a_prompt_was_ready_stands_before_it() -> None:
    first, second, third = (user(message_id=f"msg_{name}") for name in "pqr")
    early, late = reply("msg_1", "msg_p"), reply("msg_2", "msg_r")

    seen = as_seen([first, second, third, early, late])

    assert ids(seen) == ["msg_p", "msg_1", "msg_q", "msg_r", "msg_2"]


def test_other_turns_stay_where_they_are() -> None:
    asked, again = user(message_id="msg_p"), user(message_id="msg_q")
    request = user(
        CompactionPart(id="prt_c", session_id="ses_1", message_id="msg_c", auto=True),
        message_id="msg_c",
    )
    turns = [
        *(asked, reply("msg_1", "msg_p"), reply("msg_2", "msg_p")),
        *(request, reply("msg_3", "msg_p")),  # a summary that failed left nothing
        *(again, reply("msg_4", "msg_gone"), reply("msg_5", "msg_q")),
    ]

    assert as_seen(turns) == turns
