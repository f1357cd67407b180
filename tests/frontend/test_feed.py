"""A front end gets the same of an App in its process and of a server."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pegboard import App, AppOptions
from pegboard.display import Block
from pegboard.errors import AbortedError, ModelNotFoundError, NotFoundError
from pegboard.schema.event import Event, MessageUpdated, PartUpdated, SessionIdle
from pegboard.schema.message import AssistantMessage, Prompt, Turn, UserMessage
from pegboard.schema.part import Completed, Failed, TextPart, ToolPart
from pegboard.schema.session import (
    PermissionRequest,
    Question,
    QuestionOption,
    QuestionRequest,
)
from pegboard_plugins.shared.frontend import Feed, LocalFeed, attach, begin_trace, mode_of
from support.wire.served import Served, make_project, model, own_environment, served

LIMIT_S = 60
MODEL = "fake/fake-model"
COLOUR = Question(
    question="Which colour?",
    header="Colour",
    options=(QuestionOption(label="Red", description=""),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A feed, and the folder of its project."""

    feed: Feed
    directory: Path


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a model that takes directives."""
    with model() as found:
        yield found


@pytest.fixture(scope="module")
def running(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server, on a project of its own."""
    with served(tmp_path_factory.mktemp("served"), port) as found:
        yield found


@pytest.fixture(params=["local", "remote"])
async def opened(
    request: pytest.FixtureRequest, port: int, tmp_path: Path
) -> AsyncIterator[Opened]:
    """The feed of each kind, open."""
    directory = tmp_path / "work"
    if request.param == "local":
        env = {**os.environ, **own_environment(tmp_path, port)}
        options = AppOptions(interactive=True, env=env)
        app = await App.open(make_project(directory), options)
        begin_trace(app)
        found: Feed = LocalFeed(app)
    else:
        server: Served = request.getfixturevalue("running")
        directory = server.directory
        found = remote = await attach(server.url, directory, server.token)
        await remote.begin_trace()
    yield Opened(feed=found, directory=directory)
    await found.aclose()


@pytest.fixture
def feed(opened: Opened) -> Feed:
    return opened.feed


async def prompted(feed: Feed, text: str) -> tuple[str, Turn]:
    """A session in which a prompt was answered, and the answer."""
    session = await feed.create()
    return session.id, await feed.prompt(session.id, Prompt(text))


async def waiting(feed: Feed) -> PermissionRequest | QuestionRequest:
    """The request that waits, once there is one."""
    async with asyncio.timeout(LIMIT_S):
        while not (found := await feed.waiting()):  # noqa: ASYNC110 - what the method says is tested
            await asyncio.sleep(0.02)
    return found[0]


def calls(turns: tuple[Turn, ...]) -> list[ToolPart]:
    return [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]


async def test_the_facts_are_those_of_the_project(opened: Opened) -> None:
    facts = opened.feed.facts

    assert (facts.directory, facts.model, facts.agent) == (opened.directory, MODEL, "build")
    assert facts.branch in ("main", "master")
    assert (facts.sandbox, facts.hosts, facts.untrusted) == ("off", (), ())
    assert (facts.warnings, facts.left_out, facts.unseen, facts.known) == ((), (), (), ())
    assert (opened.feed.mode, opened.feed.is_connected) == ("everything", True)
    assert list(opened.feed.failures) == []


async def test_what_can_be_chosen_is_listed(opened: Opened) -> None:
    feed = opened.feed
    found = await feed.require_model(MODEL)
    plugins = {each.name for each in await feed.plugins()}

    assert "init" in [each.name for each in await feed.commands()]
    assert (await feed.agents())[0].name == "build"
    assert {"bash", "read", "edit"} <= set(await feed.tools())
    assert [each.name for each in await feed.models()] == ["Fake Model"]
    assert found is not None
    assert found.name == "Fake Model"
    assert {"bash", "read"} <= plugins
    assert set(await feed.unlisted()) <= {"fake"}
    assert all("very-secret" not in line for line in await feed.model_sources())
    assert set(await feed.files("calc")) <= {"calc.py"}


async def test_a_model_that_no_provider_serves_is_refused_with_the_nearest(feed: Feed) -> None:
    with pytest.raises(ModelNotFoundError, match="nothing/at-all"):
        await feed.require_model("nothing/at-all")
    with pytest.raises(ModelNotFoundError):
        await feed.require_model("")


async def test_a_session_is_made_found_renamed_copied_and_deleted(feed: Feed) -> None:
    made = await feed.create(title="Sums", agent="plan")
    await feed.prompt(made.id, Prompt("%say Hi.", agent="build"))
    copy = await feed.fork(made.id)
    await feed.rename(copy.id, "A copy")
    await feed.change_mode(made.id, "accept-edits")
    found = await feed.session(made.id)
    newest = await feed.newest()

    assert (found.title, found.agent, mode_of(found)) == ("Sums", "build", "accept-edits")
    assert newest is not None
    assert newest.id in (made.id, copy.id)
    assert [each.id for each in await feed.sessions(search="A copy")] == [copy.id]
    await feed.delete(copy.id)
    assert copy.id not in [each.id for each in await feed.sessions()]
    with pytest.raises(NotFoundError, match=copy.id):
        await feed.session(copy.id)


async def test_an_answer_comes_behind_all_of_its_events(feed: Feed) -> None:
    session = await feed.create()
    subscription = feed.subscribe()
    turn = await feed.prompt(session.id, Prompt("%bash echo free-1;;%say Done."))
    subscription.close()
    events: list[Event] = []
    while batch := await subscription.batch():
        events += [each for each in batch if each.session_id == session.id]

    said = [each.properties for each in events]
    texts = [
        each.part.text
        for each in said
        if isinstance(each, PartUpdated) and isinstance(each.part, TextPart)
    ]
    assert list(turn.own_texts) == ["Done."]
    assert texts[-1] == "Done."
    assert any(isinstance(each, MessageUpdated) for each in said)
    assert any(isinstance(each, SessionIdle) for each in said)
    turns = await feed.turns(session.id)
    assert turns[-1].info.id == turn.info.id
    assert [each.info.id for each in await feed.turns(session.id, limit=1)] == [turn.info.id]
    assert await feed.status(session.id) is None


async def test_words_that_the_user_typed_mention_files_and_others_do_not(feed: Feed) -> None:
    session = await feed.create()
    await feed.prompt(session.id, Prompt("%say One. @calc.py"))
    without = str(await feed.turns(session.id))
    await feed.prompt(session.id, Prompt("%say Two."), mentions="look at @calc.py")
    both = str(await feed.turns(session.id))

    assert "def add" not in without
    assert "def add" in both


async def test_a_checked_prompt_that_no_model_can_answer_is_not_stored(feed: Feed) -> None:
    session = await feed.create()
    prompt = Prompt("%say Hi.", model="fake/modle")

    with pytest.raises(Exception, match="modle"):
        await feed.prompt(session.id, prompt, checked=True)
    assert list(await feed.turns(session.id)) == []
    with pytest.raises(Exception, match="modle"):
        await feed.prompt(session.id, prompt)
    assert [type(each.info) for each in await feed.turns(session.id)] == [UserMessage]


async def test_a_slash_command_gets_its_arguments(feed: Feed) -> None:
    session = await feed.create()
    turn = await feed.run_command(session.id, "init", Prompt("in forty words"))
    first, *_ = await feed.turns(session.id)

    assert isinstance(turn.info, AssistantMessage)
    assert "in forty words" in str(first)


async def test_a_user_s_own_command_runs_unasked(feed: Feed) -> None:
    session = await feed.create()
    turn = await feed.shell(session.id, Prompt("echo my own"))

    assert "my own" in str(turn.parts)
    assert await feed.waiting() == ()


async def test_a_request_waits_until_it_is_answered(feed: Feed) -> None:
    session = await feed.create()
    outcomes = []
    for number, act in enumerate(("once", "session", "reject", "unattended")):
        text = f"%bash echo asked-{number};;%say Done."
        prompting = asyncio.create_task(feed.prompt(session.id, Prompt(text)))
        request = await waiting(feed)
        assert isinstance(request, PermissionRequest)
        assert request.patterns == (f"echo asked-{number}",)
        match act:
            case "session":
                await feed.approve(request.id, "session", patterns=request.patterns)
            case "unattended":
                await feed.leave_unattended(request.id)
            case "reject":
                await feed.reply(request.id, "reject", "do less")
            case _:
                await feed.reply(request.id, "once")
        await prompting
        outcomes.append(calls(tuple(await feed.turns(session.id)))[-1].state)

    done, lasting, refused, unattended = outcomes
    assert isinstance(done, Completed)
    assert isinstance(lasting, Completed)
    assert isinstance(refused, Failed)
    assert "do less" in refused.error
    assert isinstance(unattended, Failed)
    assert await feed.waiting() == ()


async def test_questions_are_answered_or_left(feed: Feed) -> None:
    session = await feed.create()
    answers = []
    for given in ([("Blue",)], None):
        asking = asyncio.create_task(feed.ask(session.id, (COLOUR,)))
        request = await waiting(feed)
        assert isinstance(request, QuestionRequest)
        await feed.answer(request.id, given)
        answers.append(await asking)

    assert answers == [(("Blue",),), None]


async def test_what_does_not_wait_any_more_cannot_be_answered(feed: Feed) -> None:
    with pytest.raises(NotFoundError, match="per_gone"):
        await feed.reply("per_gone", "once")
    with pytest.raises(NotFoundError, match="per_gone"):
        await feed.approve("per_gone", "session", agent_only=True)
    with pytest.raises(NotFoundError, match="per_gone"):
        await feed.leave_unattended("per_gone")
    with pytest.raises(NotFoundError, match="que_gone"):
        await feed.answer("que_gone", None)
    with pytest.raises(NotFoundError, match="que_gone"):
        await feed.answer("que_gone", [("Blue",)])


async def test_a_turn_is_stopped(feed: Feed) -> None:
    session = await feed.create()
    prompting = asyncio.create_task(feed.prompt(session.id, Prompt("%slow 300")))
    async with asyncio.timeout(LIMIT_S):
        while len(await feed.turns(session.id)) < 2:  # noqa: ASYNC110 - what the method says is tested
            await asyncio.sleep(0.02)
    assert await feed.status(session.id) is not None
    assert await feed.abort(session.id) is True
    try:
        turn = await prompting
    except AbortedError:
        turn = (await feed.turns(session.id))[-1]

    assert isinstance(turn.info, AssistantMessage)
    assert turn.info.error is not None
    assert await feed.status(session.id) is None


async def test_a_prompt_that_a_model_has_read_is_not_withdrawn(feed: Feed) -> None:
    session_id, _ = await prompted(feed, "%say Hi.")
    first, *_ = await feed.turns(session_id)

    assert await feed.withdraw(session_id, first.info.id) is False
    with pytest.raises(NotFoundError, match="msg_gone"):
        await feed.withdraw(session_id, "msg_gone")


async def test_changes_of_files_are_listed_undone_and_done_again(opened: Opened) -> None:
    feed, name = opened.feed, "made-by-the-model.txt"
    session_id, _ = await prompted(feed, f"%write {name} text;;%say Done.")
    first, *_ = await feed.turns(session_id)
    file = opened.directory / name

    assert [change.file for change in await feed.diff(session_id)] == [name]
    await feed.revert(session_id, first.info.id)
    assert not file.exists()
    await feed.unrevert(session_id)
    assert file.exists()


async def test_a_session_has_a_task_list_a_summary_and_the_work_of_plugins(feed: Feed) -> None:
    session_id, turn = await prompted(feed, "%todo wash|dry;;%say Done.")
    part = calls(tuple(await feed.turns(session_id)))[0]
    block = await feed.block(part, 80)
    await feed.compact(session_id, MODEL)

    assert isinstance(turn.info, AssistantMessage)
    assert [todo.content for todo in await feed.todos(session_id)] == ["wash", "dry"]
    assert block != Block()
    assert sum((await feed.standing(session_id, "build")).values()) > 0
    assert {step.plugin for step in await feed.trace(session_id)} <= {
        each.name for each in await feed.plugins()
    }
    summary = [turn.info for turn in await feed.turns(session_id)]
    assert any(isinstance(each, AssistantMessage) and each.summary for each in summary)


async def test_an_answer_that_was_not_interrupted_is_not_gone_on_with(feed: Feed) -> None:
    session_id, turn = await prompted(feed, "%say Hi.")
    again = await feed.resume(session_id)

    assert again.info.id == turn.info.id
