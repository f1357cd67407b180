"""The client of a server: every method, streams that are cut, errors, and how a server is found."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pegboard_client import (
    AsyncClient,
    Client,
    GlobalEvent,
    Resync,
    ServerError,
    ServerUnreachableError,
)

from docs.pages import blocks
from pegboard import Prompt
from pegboard.errors import InvalidInputError
from pegboard.schema.event import (
    Event,
    PartDelta,
    PermissionAsked,
    QuestionAsked,
    SessionCreated,
    SessionIdle,
)
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.part import StepFinishPart
from pegboard.schema.session import Session
from pegboard_plugins.shared.frontend import Protection
from support.wire.cable import cable
from support.wire.served import Served, model, served

LIMIT_S = 30
MODEL = "fake/fake-model"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root: Path = tmp_path_factory.mktemp("client")
    with model() as port, served(root, port) as running_server:
        yield running_server


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with Client.discover(server.directory, env=server.env) as opened:
        yield opened


@pytest.fixture
async def async_client(server: Served) -> AsyncIterator[AsyncClient]:
    async with AsyncClient.discover(server.directory, env=server.env) as opened:
        yield opened


def text_of(turn: Turn) -> str:
    return turn.text


def test_sessions_are_made_changed_and_deleted(client: Client) -> None:
    made = client.sessions.create(title="Sums", metadata={"ticket": 7})
    child = client.sessions.create(parent_id=made.id)

    assert client.sessions.get(made.id) == made
    assert client.sessions.children(made.id) == (child,)
    assert made.id in [each.id for each in client.sessions.list(search="sums", limit=5)]
    assert child.id in [each.id for each in client.sessions.list(roots=False)]
    renamed = client.sessions.update(made.id, title="Numbers", archived_at=1)
    assert (renamed.title, renamed.metadata) == ("Numbers", {"ticket": 7})
    assert renamed.time.archived is not None
    assert client.sessions.update(made.id, archived_at=None).time.archived is None
    assert client.sessions.status() == {}
    assert client.sessions.delete(made.id) is True
    assert made.id not in [each.id for each in client.sessions.list()]


def test_a_prompt_is_answered_and_read_again(client: Client) -> None:
    session = client.sessions.create()
    turn = client.prompt(session.id, Prompt("%todo one|two;;%write new.txt hello", model=MODEL))

    assert isinstance(turn.info, AssistantMessage)
    assert turn.info.error is None
    assert [each.content for each in client.todo(session.id)] == ["one", "two"]
    assert [each.file for each in client.diff(session.id)] == ["new.txt"]
    turns = client.messages(session.id)
    assert turns[-1] == client.message(session.id, turn.info.id)
    assert len(client.messages(session.id, limit=1)) == 1
    before = client.sessions.revert(session.id, turns[0].info.id)
    assert before.revert is not None
    assert client.files.read("new.txt").content == ""
    assert client.sessions.unrevert(session.id).revert is None
    assert client.files.read("new.txt").content == "hello"
    fork = client.sessions.fork(session.id)
    assert len(client.messages(fork.id)) == len(turns)
    assert client.sessions.summarize(fork.id, MODEL) is True


def test_a_command_and_a_shell_line_are_turns(client: Client) -> None:
    session = client.sessions.create()

    shell = client.shell(session.id, "echo from the shell")
    command = client.command(session.id, client.commands()[0].name, "%say done")

    assert "from the shell" in str(shell.parts)
    assert isinstance(command.info, AssistantMessage)


def test_what_a_person_typed_is_searched_for_mentions(client: Client) -> None:
    session = client.sessions.create()
    client.prompt(
        session.id, Prompt("look at @README.md", no_reply=True), mentions="look at @README.md"
    )
    client.prompt(session.id, Prompt("not at @calc.py", no_reply=True))

    stored = str(client.messages(session.id))
    assert "README.md" in stored.partition("look at @README.md")[2]
    assert "def add" not in stored


def test_files_agents_and_settings_are_told(client: Client, server: Served) -> None:
    assert "calc.py" in [node.name for node in client.files.list()]
    assert client.files.read("calc.py").content.startswith("def add")
    assert client.files.find("calc", kind="file") == ("calc.py",)
    assert client.files.search("return")[0].path.text == "calc.py"
    (server.directory / "README.md").write_text("changed\n")
    assert "README.md" in [change.path for change in client.files.changes()]
    assert client.agents()[0].name == "build"
    assert "fake" in [each.id for each in client.providers().providers]
    assert client.config()["model"] == MODEL
    assert client.health().healthy
    head = (server.directory / ".git" / "HEAD").read_text().strip()
    assert head == f"ref: refs/heads/{client.branch().branch}"
    assert client.protection() == Protection(sandbox="off", mode="everything")


async def test_a_permission_and_a_question_are_answered(async_client: AsyncClient) -> None:
    session = await async_client.sessions.create()
    async with asyncio.timeout(LIMIT_S), async_client.events() as events:
        text = "%bash echo secret;;%question Which?|Red|Blue"
        await async_client.prompt_async(session.id, text)
        async for event in events:
            assert isinstance(event, Event)
            match event.properties:
                case PermissionAsked(request=request):
                    assert await async_client.permissions.list() == (request,)
                    assert await async_client.permissions.reply(
                        request.id, "always", scope="session"
                    )
                case QuestionAsked(request=asked):
                    assert await async_client.questions.list() == (asked,)
                    assert await async_client.questions.reply(asked.id, [["Blue"]])
                case SessionIdle(session_id=session.id):
                    break
    told = str(await async_client.messages(session.id))
    assert "secret" in told
    assert "Blue" in told


async def test_an_approval_is_for_no_more_than_was_offered(async_client: AsyncClient) -> None:
    session = await async_client.sessions.create()
    permissions = async_client.permissions
    async with asyncio.timeout(LIMIT_S), async_client.events() as events:
        await async_client.prompt_async(session.id, "%bash echo secret")
        async for event in events:
            assert isinstance(event, Event)
            match event.properties:
                case PermissionAsked(request=request):
                    with pytest.raises(ServerError, match="would allow more") as refused:
                        await permissions.approve(request.id, patterns=["*"])
                    assert (refused.value.status, refused.value.name) == (400, "BadRequest")
                    assert await permissions.list() == (request,)
                    assert await permissions.approve(request.id, patterns=["echo secret"])
                case SessionIdle(session_id=session.id):
                    break
    assert "secret" in str(await async_client.messages(session.id))


async def test_a_rejected_question_ends_the_turn(async_client: AsyncClient) -> None:
    session = await async_client.sessions.create()
    async with asyncio.timeout(LIMIT_S), async_client.events() as events:
        await async_client.prompt_async(session.id, "%question Which?|Red|Blue")
        async for event in events:
            if isinstance(event, Event) and isinstance(event.properties, QuestionAsked):
                assert await async_client.questions.reject(event.properties.request.id)
            if isinstance(event, Event) and event.properties == SessionIdle(session_id=session.id):
                break
    assert await async_client.questions.list() == ()


async def test_a_turn_is_aborted(async_client: AsyncClient) -> None:
    session = await async_client.sessions.create()
    async with asyncio.timeout(LIMIT_S), async_client.events() as events:
        prompting = asyncio.create_task(async_client.prompt(session.id, "%slow 200"))
        async for event in events:
            if isinstance(event, Event) and isinstance(event.properties, PartDelta):
                assert session.id in await async_client.sessions.status()
                assert await async_client.sessions.abort(session.id)
                break
        turn = await prompting
    assert isinstance(turn.info, AssistantMessage)
    assert type(turn.info.error).__name__ == "AbortedFailure"


async def test_a_stream_that_is_cut_goes_on_without_a_gap(server: Served) -> None:
    async with cable(server.url) as line, asyncio.timeout(LIMIT_S):
        near = AsyncClient(line.url, token=server.token, directory=server.directory)
        far = AsyncClient(server.url, token=server.token, directory=server.directory)
        async with near, far, near.events() as cut, far.events() as whole:
            session = await far.sessions.create()
            await far.prompt_async(session.id, "%slow 12;;%say done")
            seen, cuts = [], 0
            async for event in cut:
                seen.append(event)
                if len(seen) in {3, 8, 12}:
                    line.cut()
                    cuts += 1
                if _is_end(event, session):
                    break
            expected = [await anext(whole)]
            while not _is_end(expected[-1], session):
                expected.append(await anext(whole))

    assert cuts == 3
    assert line.connections > 1
    assert seen == expected


def _is_end(event: Event | Resync, session: Session) -> bool:
    return isinstance(event, Event) and event.properties == SessionIdle(session_id=session.id)


async def test_a_stream_that_is_away_too_long_is_told_to_read_anew(server: Served) -> None:
    async with cable(server.url) as line, asyncio.timeout(LIMIT_S):
        near = AsyncClient(line.url, token=server.token)
        async with near, near.global_events() as events:
            await line.unplug()
            with server.client() as other:
                for _ in range(9):  # more than the server keeps
                    other.post("/tui/append-prompt", json={"text": "x" * (1 << 20)})
            await line.plug()
            first = await anext(events)
            made = await near.sessions.create()
            then = await anext(events)

    assert isinstance(first, Resync)
    assert first.missed > 0
    assert isinstance(then, GlobalEvent)
    assert (then.directory, then.event.session_id) == (str(server.directory), made.id)


async def test_a_cancelled_wait_loses_no_event(async_client: AsyncClient) -> None:
    async with asyncio.timeout(LIMIT_S), async_client.events() as events:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0.05)
        session = await async_client.sessions.create()
        event = await anext(events)
        while not (isinstance(event, Event) and event.session_id == session.id):
            event = await anext(events)
    assert isinstance(event.properties, SessionCreated)


def test_a_thread_hears_events_while_another_prompts(client: Client) -> None:
    heard: list[Event | Resync] = []
    session = client.sessions.create()

    def listen() -> None:
        for event in stream:
            heard.append(event)
            if _is_end(event, session):
                return

    with client.events() as stream:
        thread = threading.Thread(target=listen)
        thread.start()
        turn = client.prompt(session.id, "%say hello")
        thread.join(LIMIT_S)

    assert not thread.is_alive()
    assert text_of(turn).strip() == "hello"
    kinds = {event.type for event in heard if isinstance(event, Event)}
    assert {"message.updated", "message.part.updated", "session.idle"} <= kinds


def test_a_refusal_says_what_and_why(client: Client) -> None:
    with pytest.raises(ServerError) as refused:
        client.sessions.get("ses_000000000000aaaaaaaaaaaaaa")
    unknown = client.sessions.create()
    with pytest.raises(ServerError) as no_model:
        client.prompt(unknown.id, Prompt("hi", model="fake/modle"))

    error = refused.value
    assert (error.status, error.name, error.exit_code) == (404, "NotFoundError", 2)
    assert error.message == error.data["message"] == str(error)
    assert (no_model.value.name, no_model.value.exit_code) == ("ProviderModelNotFoundError", 4)
    assert "Did you mean fake/fake-model?" in no_model.value.message


def test_a_wrong_token_is_told_where_the_right_one_is(server: Served) -> None:
    with Client(server.url, token="wrong") as stranger, pytest.raises(ServerError) as refused:
        stranger.health()

    assert (refused.value.status, refused.value.exit_code) == (401, 4)
    assert server.runtime_file.name in str(refused.value)
    with Client(server.url, password=server.token) as friend:
        assert friend.health().healthy


async def test_no_server_is_told_with_the_way_to_start_one(server: Served) -> None:
    gone = AsyncClient("http://127.0.0.1:9", token="t")
    async with gone:
        with pytest.raises(ServerUnreachableError, match=r"pegboard serve"):
            await gone.health()
        with pytest.raises(ConnectionError):
            await anext(gone.events())
    with pytest.raises(InvalidInputError, match="http://HOST:PORT"):
        AsyncClient("localhost:4096")


def test_a_server_that_starts_again_is_still_open(tmp_path: Path) -> None:
    with model() as port:
        with served(tmp_path, port) as first:
            where = f"--port={first.url.rpartition(':')[2]}"
            client = Client.discover(first.directory, env=first.env)
            assert client.health().healthy
        with pytest.raises(ServerUnreachableError):
            client.health()
        with served(tmp_path, port, where) as second, client:
            assert second.token != first.token
            assert client.health().healthy


@pytest.mark.parametrize(
    ("file", "call"),
    [
        ("client.py", "print(ask(Path.cwd(), 'hi'))"),
        ("watch.py", "asyncio.run(watch(Path.cwd(), 'hi'))"),
    ],
)
def test_the_programs_of_the_page_run(server: Served, file: str, call: str) -> None:
    block = next(block for block in blocks("python") if block.file == file)
    code = f"{block.text.partition('if __name__')[0]}\n{call}"
    command = [sys.executable, "-c", code]

    done = subprocess.run(
        command,
        cwd=server.directory,
        env=server.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout.strip()) == (0, "ECHO: hi")


def test_what_is_not_known_is_none_for_this_client_and_a_number_for_others(
    client: Client, server: Served
) -> None:
    session = client.sessions.create()
    turn = client.prompt(session.id, "%say hello")
    [stored] = [each for each in client.messages(session.id) if each.info.id == turn.info.id]
    [step] = [part for part in stored.parts if isinstance(part, StepFinishPart)]
    [known] = [each for each in client.providers().providers if each.id == "fake"]
    with server.client() as other:
        described = other.get(f"/session/{session.id}").json()
        said = other.get(f"/session/{session.id}/message/{turn.info.id}").json()
        models = other.get("/config/providers").json()["providers"][0]["models"]

    for each in (turn, stored):
        assert isinstance(each.info, AssistantMessage)
        assert each.info.cost is None
    assert step.cost is None
    assert known.models["fake-model"].cost is None
    assert known.models["fake-model"].limit.context == 128_000
    assert (client.sessions.get(session.id).known_cost, described.get("cost", 0)) == (None, 0)
    assert said["info"]["cost"] == 0
    assert "pegboard" not in json.dumps([said, models, {**described, "directory": ""}])
    assert models["fake-model"]["cost"]["input"] == 0
