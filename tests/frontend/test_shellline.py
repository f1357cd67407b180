"""`!command`: what the user runs is recorded for the model."""

import asyncio
from pathlib import Path

import pytest

from pegboard.errors import InvalidInputError, ModelNotFoundError, NotFoundError, SessionBusyError
from pegboard.providers import Result
from pegboard.schema.message import AbortedFailure, AssistantMessage, UserMessage
from pegboard.schema.part import Completed, Failed, TextPart, ToolPart
from pegboard.schema.session import Busy, Idle
from pegboard_plugins.shared.frontend import ShellOrder, run_shell
from support.models.played import Played, opened, text


async def there(path: Path) -> None:
    """Wait until a command has made this file."""
    async with asyncio.timeout(30):
        while not path.exists():  # noqa: ASYNC110, ASYNC240 - a file
            await asyncio.sleep(0.01)


async def test_a_command_of_the_users_is_recorded_and_seen_by_the_model(tmp_path: Path) -> None:
    provider = Played(text("I see"))
    async with opened(tmp_path, provider, allow=False) as app:
        session = await app.create_session()
        turn = await run_shell(
            app, session.id, ShellOrder(command="echo out; echo err >&2; exit 3")
        )
        turns = await app.list_turns(session.id)
        assert provider.requests == []
        await app.prompt(session.id, "what was that")

    user, answer = turns
    assert isinstance(user.info, UserMessage)
    assert [part.synthetic for part in user.parts if isinstance(part, TextPart)] == [True]
    assert answer == turn
    assert isinstance(turn.info, AssistantMessage)
    assert (turn.info.parent_id, turn.info.finish) == (user.info.id, None)
    assert turn.info.time.completed is not None
    [part] = turn.parts
    assert isinstance(part, ToolPart)
    assert isinstance(part.state, Completed)
    assert (part.tool, part.state.input["command"]) == ("shell", "echo out; echo err >&2; exit 3")
    assert part.state.output == "out\nerr\n[exit code 3]"
    assert part.state.metadata["exit"] == 3
    results = [
        item
        for message in provider.requests[0].messages
        for item in message.content
        if isinstance(item, Result)
    ]
    assert [result.output for result in results] == ["out\nerr\n[exit code 3]"]


async def test_the_output_of_a_command_that_was_stopped_is_stored(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("after"))) as app:
        session = await app.create_session()
        order = ShellOrder(command="echo important; touch on; sleep 60")
        running = asyncio.create_task(run_shell(app, session.id, order))
        await there(app.workspace.directory / "on")
        await app.abort(session.id)
        turn = await running

    [part] = turn.parts
    assert isinstance(part, ToolPart)
    assert isinstance(part.state, Failed)
    assert part.state.error == "important\n\nThe call was stopped before it ended."
    assert part.state.metadata == {"output": "important\n"}


async def test_a_busy_session_runs_no_command_and_an_abort_ends_one(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("after"))) as app:
        session = await app.create_session()
        order = ShellOrder(command="touch on; sleep 60")
        running = asyncio.create_task(run_shell(app, session.id, order))
        await there(app.workspace.directory / "on")
        assert app.session_status(session.id) == Busy()
        with pytest.raises(SessionBusyError):
            await run_shell(app, session.id, order)
        assert await app.abort(session.id)
        turn = await running
        assert app.session_status(session.id) == Idle()

    assert isinstance(turn.info, AssistantMessage)
    assert isinstance(turn.info.error, AbortedFailure)
    [part] = turn.parts
    assert isinstance(part, ToolPart)
    assert isinstance(part.state, Failed)


async def test_a_prompt_that_comes_meanwhile_is_answered(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("answered"))) as app:
        session = await app.create_session()
        order = ShellOrder(command="touch on; while [ ! -e off ]; do sleep 0.01; done; echo ran")
        running = asyncio.create_task(run_shell(app, session.id, order))
        await there(app.workspace.directory / "on")
        prompt = asyncio.create_task(app.prompt(session.id, "hi"))
        while len(await app.list_turns(session.id)) < 3:  # noqa: ASYNC110 - the database has no event
            await asyncio.sleep(0.01)
        (app.workspace.directory / "off").touch()
        ran, answer = await asyncio.gather(running, prompt)

    assert ran.parts[0].state.output == "ran"
    assert [part.text for part in answer.parts if isinstance(part, TextPart)] == ["answered"]


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (ShellOrder(command="  "), InvalidInputError),
        (ShellOrder(command="a\0b"), InvalidInputError),
        (ShellOrder(command="ls", agent="nobody"), NotFoundError),
        (ShellOrder(command="ls", model="played/none"), ModelNotFoundError),
    ],
)
async def test_what_cannot_be_run_is_not_recorded(
    tmp_path: Path, order: ShellOrder, error: type[Exception]
) -> None:
    async with opened(tmp_path, Played(text("x"))) as app:
        session = await app.create_session()
        with pytest.raises(error):
            await run_shell(app, session.id, order)
        assert await app.list_turns(session.id) == ()


async def test_a_long_output_is_cut(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("x"))) as app:
        session = await app.create_session()
        turn = await run_shell(app, session.id, ShellOrder(command="seq 1 100000"))

    state = turn.parts[0].state
    assert isinstance(state, Completed)
    assert len(state.output) < 60_000
    whole = await asyncio.to_thread(Path(state.metadata["outputPath"]).read_text)
    assert whole.count("\n") >= 99_999
