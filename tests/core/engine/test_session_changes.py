"""What is changed of a session stays changed, whoever runs it; what is deleted stays deleted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from pegboard import App
from pegboard.errors import AbortedError, NotFoundError, PegboardError, SessionBusyError
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta
from pegboard.schema.part import TextPart
from pegboard.schema.session import Rule, Session
from pegboard.storage.changes import ChangeSession, DropMessage, PutPart
from pegboard_plugins import task
from pegboard_plugins.shared.frontend import edit_turn
from support.models.played import HI, USAGE, Played, ToolsPlugin, call, calls, opened, shout, text

pytestmark = pytest.mark.usefixtures("each_store")


class Gated(Played):
    """A provider whose answers wait at a gate."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def _answer(self, _: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.asked.set()
        await self.go.wait()
        yield TextDelta("t", "yes")
        yield StreamFinish("stop", USAGE)


@asynccontextmanager
async def running(folder: Path, app: App, provider: Gated) -> AsyncIterator[tuple[Session, App]]:
    """A session that `app` runs, and a second App on the same database; the run ends at the end."""
    session = await app.create_session(title="first")
    prompt = asyncio.create_task(app.prompt(session.id, HI))
    await provider.asked.wait()
    async with opened(folder, Played(text("no"))) as other:
        yield session, other
    provider.go.set()
    async with asyncio.timeout(30):
        await prompt


async def test_what_another_app_changes_during_a_run_is_there_after_it(tmp_path: Path) -> None:
    provider = Gated()
    rules = (Rule("bash", "*", "deny"),)
    async with opened(tmp_path, provider) as app:
        async with running(tmp_path, app, provider) as (session, other):
            await other.update_session(session.id, title="theirs", archived=True)
            await other.storage.commit(
                ChangeSession(session_id=session.id, permission=rules, metadata={"a": 1})
            )
        after = await app.session(session.id)

    assert (after.title, after.permission, after.metadata) == ("theirs", rules, {"a": 1})
    assert after.time.archived is not None
    assert after.agent == "build", "the run has stored its own changes, too"
    assert after.tokens is not None


async def test_a_run_knows_what_its_own_app_changes_meanwhile(tmp_path: Path) -> None:
    rules = (Rule("shout", "*", "deny"),)
    seen: list[tuple[Rule, ...]] = []

    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        await app.storage.commit(ChangeSession(session_id=session.id, permission=rules))
        for event in calls(call("shout", '{"words": "hi"}')) if not seen else text("done"):
            yield event
        seen.append(app._runs._runs[session.id].session.permission)

    async with opened(tmp_path, Played(answer), ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

    assert seen == [rules, rules]


async def test_a_deleted_session_stays_deleted_whatever_is_changed_beside_it(
    tmp_path: Path,
) -> None:
    async def changed(app: App, session_id: str, number: int) -> None:
        for _ in range(number % 7):
            await asyncio.sleep(0)
        with suppress(NotFoundError):
            await app.update_session(session_id, title=f"title {number}")

    async with opened(tmp_path, Played(text("yes"))) as app:
        sessions = [await app.create_session() for _ in range(50)]
        async with asyncio.TaskGroup() as group:
            for number, session in enumerate(sessions):
                group.create_task(app.delete_session(session.id))
                group.create_task(changed(app, session.id, number))

        assert await app.sessions(roots=False) == ()


async def test_a_session_that_is_prompted_from_all_sides_can_be_deleted(tmp_path: Path) -> None:
    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("t", "yes")
        await asyncio.sleep(0.001)
        yield StreamFinish("stop", USAGE)

    async def talk(app: App, session_id: str) -> PegboardError:
        while True:
            try:
                await app.prompt(session_id, HI)
            except AbortedError:
                continue
            except PegboardError as error:
                return error

    async with opened(tmp_path, Played(answer)) as app:
        for turns in range(8):
            session = await app.create_session()
            talkers = [asyncio.create_task(talk(app, session.id)) for _ in range(3)]
            for _ in range(turns * 3):
                await asyncio.sleep(0.001)
            async with asyncio.timeout(30):
                await app.delete_session(session.id)
                errors = await asyncio.gather(*talkers)
            assert all(isinstance(each, NotFoundError | SessionBusyError) for each in errors)

        assert await app.sessions(roots=False) == ()
        kinds = {event.type for event in await app.storage.events(0)}
        assert kinds == {"session.deleted"}
        assert app._runs._tasks == {}


async def test_a_session_that_another_app_runs_is_not_deleted(tmp_path: Path) -> None:
    provider = Gated()
    async with (
        opened(tmp_path, provider) as app,
        running(tmp_path, app, provider) as (session, other),
    ):
        with pytest.raises(SessionBusyError):
            await other.delete_session(session.id)
        assert await other.session(session.id) == await app.session(session.id)


async def test_a_subagent_leaves_nothing_of_a_session_that_is_deleted(tmp_path: Path) -> None:
    provider = Gated()

    async def answer(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if "Do the work." in str(request.messages[-1].content):
            provider.asked.set()
            await provider.go.wait()
        arguments = '{"description": "w", "prompt": "Do the work.", "subagent_type": "helper"}'
        for event in calls(call("task", arguments)):
            yield event

    async with opened(tmp_path, Played(answer), task) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await provider.asked.wait()
        assert len(await app.sessions(roots=False)) == 2
        async with asyncio.timeout(30):
            await app.delete_session(session.id)
            await asyncio.gather(prompt, return_exceptions=True)

        assert await app.sessions(roots=False) == ()


async def test_a_message_can_be_changed_only_while_it_is_there_and_nothing_runs(
    tmp_path: Path,
) -> None:
    provider = Gated()
    provider.go.set()
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turn = (await app.list_turns(session.id))[0]
        [part] = turn.parts
        assert isinstance(part, TextPart)
        edited = PutPart(TextPart(part.id, part.session_id, part.message_id, "edited"))

        await edit_turn(app, session.id, edited)
        assert (await app.list_turns(session.id))[0].parts == (edited.part,)
        provider.go.clear()
        provider.asked.clear()
        async with running(tmp_path, app, provider) as (busy, other):
            with pytest.raises(SessionBusyError):
                await edit_turn(other, busy.id, DropMessage(busy.id, "msg_1"))
        await edit_turn(app, session.id, DropMessage(session.id, turn.info.id))
        with pytest.raises(NotFoundError):
            await edit_turn(app, session.id, edited)

        assert [each.info.id for each in await app.list_turns(session.id)] != [turn.info.id]
