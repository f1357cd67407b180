"""What a tool of anybody's answers can be stored and sent, or is said to be left out."""

import base64
from pathlib import Path
from typing import Any

import pytest

from pegboard import Attachment, ToolContext, ToolError, ToolResult, tool
from pegboard.schema.part import Completed, Failed
from pegboard.schema.session import Todo
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of

PNG = "data:image/png;base64,iVBORw0KGgo="


class SpeechlessError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


async def set_state(context: ToolContext) -> None:
    await context.set_state("key", object())


async def set_todos(context: ToolContext) -> None:
    await context.set_todos([Todo(content="\ud800", status="pending", priority="low", id="1")])


async def set_odd_todos(context: ToolContext) -> None:
    await context.set_todos([Todo(content="x", status="pending", priority="low", id=5)])


async def edited(context: ToolContext) -> None:
    await context.record_edit(context.directory / "\udcff")


async def follow_up(context: ToolContext) -> None:
    await context.queue_prompt("\ud800", agent="build")


async def state_of(folder: Path, answer: Any) -> Any:
    """The state of a call of a tool that gives this answer, or raises it."""

    @tool
    async def odd(context: ToolContext) -> Any:
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, ToolResult):
            context.progress(title=answer.title, metadata=answer.metadata)
        return await answer(context) or "done" if callable(answer) else answer

    provider = Played(calls(call("odd", "{}")), text("done"))
    async with opened(folder, provider, ToolsPlugin(odd)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(tuple(await app.list_turns(session.id)))
    assert len(provider.requests) > 1
    return part.state


async def test_halves_of_letters_become_replacement_characters(tmp_path: Path) -> None:
    result = ToolResult(output="a\udcff\ud83d\ude00", title="t\ud800", metadata={"n": "\ud800"})

    state = await state_of(tmp_path, result)

    assert isinstance(state, Completed)
    assert (state.output, state.title) == ("a\ufffd\U0001f600", "t\ufffd")
    assert state.metadata == {"n": "\ufffd", "truncated": False}


async def test_metadata_that_have_no_json_or_are_too_long_are_left_out(tmp_path: Path) -> None:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    facts = {"kept": 1, "object": object(), "loop": loop, "long": "x" * (5 << 20)}

    state = await state_of(tmp_path, ToolResult(output="x", metadata=facts))

    assert isinstance(state, Completed)
    assert state.metadata == {
        "kept": 1,
        "leftOut": ["object", "loop", "long"],
        "truncated": False,
    }


@pytest.mark.parametrize("levels", [980, 982, 984, 986])
async def test_metadata_that_are_too_deep_to_be_stored_are_left_out(
    tmp_path: Path, levels: int
) -> None:
    deep: list[Any] = []
    for _ in range(levels):
        deep = [deep]

    state = await state_of(tmp_path, ToolResult(output="x", metadata={"deep": deep}))

    assert isinstance(state, Completed)
    assert state.metadata == {"leftOut": ["deep"], "truncated": False}


async def test_an_attachment_that_no_provider_takes_is_left_out_and_said(tmp_path: Path) -> None:
    huge = PNG + "A" * (28 << 20)
    whole = f"data:image/png;base64,{base64.b64encode(bytes((20 << 20) - 8)).decode()}"
    files = tuple(
        Attachment(mime="image/png", url=url, filename=name)
        for url, name in (
            (PNG, "a.png"),
            (whole, "d.png"),
            (PNG.partition(",")[0] + ",", "b.png"),
            (huge, "c.png"),
        )
    )

    state = await state_of(tmp_path, ToolResult(output="x", attachments=files))

    assert isinstance(state, Completed)
    assert state.attachments is not None
    assert [file.filename for file in state.attachments] == ["a.png", "d.png"]
    assert "[The attachment b.png is empty]" in state.output
    assert "[The attachment c.png has 22,020,105 bytes, 0 could be attached]" in state.output


async def test_a_long_error_is_cut_like_an_output(tmp_path: Path) -> None:
    state = await state_of(tmp_path, ToolError("why\ud800\n" * 100_000))

    assert isinstance(state, Failed)
    assert state.error.startswith("why\ufffd\n")
    assert len(state.error) < 52_000
    assert "The whole output is in " in state.error


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (set_state, Failed),
        (set_todos, Failed),
        (set_odd_todos, Failed),
        (edited, Completed),
        (follow_up, Completed),
    ],
)
async def test_what_a_tool_gives_to_be_stored_does_not_end_the_turn(
    tmp_path: Path, act: Any, kind: type
) -> None:
    state = await state_of(tmp_path, act)

    assert isinstance(state, kind)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ToolResult(output=b"bytes"), "the output of the tool's answer is of the type bytes"),
        (ToolResult(output="", metadata=[]), "the metadata of the tool's answer is of the type"),
        (ToolResult(output="", attachments=("x",)), "the attachment of the tool's answer is"),
        (
            ExceptionGroup("in a TaskGroup", [ToolError("no"), OSError("disk")]),
            "odd failed: ExceptionGroup: ToolError: no; OSError: disk",
        ),
        (SpeechlessError(), "odd failed: SpeechlessError: its text cannot be had"),
    ],
)
async def test_what_is_no_answer_fails_the_call_alone(
    tmp_path: Path, answer: Any, why: str
) -> None:
    state = await state_of(tmp_path, answer)

    assert isinstance(state, Failed)
    assert why in state.error
