"""Calls that come to the same again and again: a circle is asked about, work is not."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from pegboard import App, ToolContext, hookimpl, tool
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.part import Completed
from pegboard.schema.session import PermissionRequest, Verdict
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of


class DoomRule:
    """The call that is one too many is asked for, all else is allowed."""

    @hookimpl
    async def permission_ask(self, request: PermissionRequest) -> Verdict:
        return Verdict(action="ask" if request.permission == "doom_loop" else "allow")


@tool
async def look(path: str, context: ToolContext) -> str:
    """The text of a file."""
    return (context.directory / path).read_text()


@tool
async def check() -> str:
    """Run the tests."""
    return "failed"


@tool(permission="bash")
async def advance(context: ToolContext) -> str:
    """Change a file, another way each time."""
    path = context.directory / "state"
    path.write_text(f"{path.read_text()}." if path.exists() else ".")
    return "ok"


@tool(permission="bash")
async def put(content: str, context: ToolContext) -> str:
    """Write a file."""
    (context.directory / "state").write_text(content)
    return "ok"


@tool
async def delegate(context: ToolContext) -> str:
    """Have a subagent work."""
    await context.run_subagent("helper", "do it", description="work")
    return "the subagent is done"


@tool
async def fail() -> str:
    """Fail."""
    raise ValueError("always")


@tool
async def write_much() -> str:
    """More than a model can read."""
    return "a line\n" * 10_000


TOOLS = ToolsPlugin(look, check, advance, put, delegate, fail, write_much)
Made = tuple[str, str]


def steps(made: Sequence[Made]) -> list[list[StreamEvent]]:
    """An answer for each call, by name and arguments."""
    return [
        calls(call(name, arguments, call_id=f"c{n}")) for n, (name, arguments) in enumerate(made)
    ]


async def ran(app: App, provider: Played) -> list[bool]:
    """Which of the calls were let through, in a session of its own."""
    session = await app.create_session()
    await app.prompt(session.id, HI)
    return [
        isinstance(part.state, Completed) or "always" in getattr(part.state, "error", "")
        for part in tools_of(await app.list_turns(session.id))
    ]


async def outcomes(folder: Path, made: Sequence[Made], **options: object) -> list[bool]:
    """Which of the calls were let through, with one call in each answer."""
    provider = Played(*steps(made), text("I stop"))
    async with opened(folder, provider, DoomRule(), TOOLS, allow=False, **options) as app:
        (folder / "project" / "a").write_text("a")
        (folder / "project" / "b").write_text("b")
        return await ran(app, provider)


CHECK, ADVANCE = ("check", "{}"), ("advance", "{}")
LOOK_A, LOOK_B = ("look", '{"path": "a"}'), ("look", '{"path": "b"}')
PUT_A, PUT_B = ("put", '{"content": "a"}'), ("put", '{"content": "b"}')
STATE = ("look", '{"path": "state"}')
NO_SNAPSHOTS = {"config": {"model": "played/m", "snapshot": False}}


@pytest.mark.parametrize("options", [{}, NO_SNAPSHOTS], ids=["snapshots", "none"])
@pytest.mark.parametrize("made", [CHECK, ("fail", "{}"), ("write_much", "{}")])
async def test_the_third_call_in_a_row_that_comes_to_the_same_is_asked_about(
    tmp_path: Path, made: Made, options: dict[str, object]
) -> None:
    assert await outcomes(tmp_path, [made] * 4, **options) == [True, True, False, False]


async def test_a_call_that_comes_to_something_else_is_no_circle(tmp_path: Path) -> None:
    made = [each for n in range(5) for each in (("put", f'{{"content": "{n}"}}'), STATE)]

    assert await outcomes(tmp_path, made, **NO_SNAPSHOTS) == [True] * 10


async def test_files_that_change_are_no_circle_whatever_tool_changes_them(tmp_path: Path) -> None:
    assert await outcomes(tmp_path, [ADVANCE, CHECK] * 5) == [True] * 10


async def test_files_that_a_subagent_changes_are_no_circle(tmp_path: Path) -> None:
    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        mine = any(getattr(each, "text", "") == HI for each in request.messages[0].content)
        asked = request.messages[-1].role != "tool"
        done = sum(message.role == "tool" for message in request.messages)
        events = steps([("delegate", "{}"), CHECK] * 4 if mine else [ADVANCE])
        answers = [*events, text("done")] if mine or asked else [text("done")] * 2
        for event in answers[done]:
            yield event

    provider = Played(answer)
    async with opened(tmp_path, provider, DoomRule(), TOOLS, allow=False) as app:
        assert await ran(app, provider) == [True] * 8


async def test_calls_that_come_to_the_same_in_turns_are_a_circle(tmp_path: Path) -> None:
    through = await outcomes(tmp_path, [LOOK_A, LOOK_B] * 5)

    assert through == [True] * 5 + [False] * 5


async def test_a_change_that_is_taken_back_in_turns_is_a_circle(tmp_path: Path) -> None:
    through = await outcomes(tmp_path, [PUT_A, CHECK, PUT_B, CHECK] * 6)

    assert through[:8] == [True] * 8
    assert not any(through[-4:])


async def test_a_file_may_be_read_again_after_other_work(tmp_path: Path) -> None:
    made = [each for n in range(4) for each in (LOOK_A, ("look", f'{{"path": "{"./" * n}b"}}'))]

    assert await outcomes(tmp_path, made, **NO_SNAPSHOTS) == [True] * 8


async def test_the_next_prompt_begins_anew(tmp_path: Path) -> None:
    provider = Played(*steps([CHECK, CHECK]), text("I stop"), *steps([CHECK]), text("again"))
    async with opened(tmp_path, provider, DoomRule(), TOOLS, allow=False) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await app.prompt(session.id, HI)
        states = [type(part.state) for part in tools_of(await app.list_turns(session.id))]

    assert states == [Completed] * 3
