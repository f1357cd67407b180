"""`pegboard run --attach`: the same screen, records and exit codes, with a server behind them."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pegboard_client import Client

from pegboard.cli import Exit
from pegboard.cli.main import main
from pegboard.schema.message import AbortedFailure, AssistantMessage
from pegboard.schema.session import PermissionRequest
from plugins.cli.commands import CommandLine, Done, finished
from support.wire.cable import cable
from support.wire.served import Served, model, served

QUESTION = "One of these keys: "
LIMIT_S = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root: Path = tmp_path_factory.mktemp("attached")
    with model() as port, served(root, port) as running:
        yield running


@pytest.fixture
def user(server: Served) -> CommandLine:
    """The user who started the server."""
    return CommandLine(server.places, server.directory)


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with Client.discover(server.directory, env=server.env) as opened:
        yield opened


async def attach(user: CommandLine, server: Served, *words: str) -> Done:
    return await user("run", "--attach", server.url, *words)


def kinds(done: Done) -> list[str]:
    return [record["type"] for record in done.records]


async def test_the_answer_is_all_of_standard_output(user: CommandLine, server: Served) -> None:
    done = await attach(user, server, "%bash echo free-1;;%say Done.")

    assert (done.code, done.out) == (0, "Done.\n")
    assert done.err.startswith("bash echo free-1\n  free-1\n")
    assert "2 steps" in done.err


async def test_records_are_those_of_a_local_run(user: CommandLine, server: Served) -> None:
    words = ("--format", "json", "%bash echo free-1;;%think hm;;%say Done.")
    done = await attach(user, server, *words)
    local = await local_run(server, *words)

    assert (done.code, local.code) == (0, 0)
    assert kinds(done) == kinds(local)
    ours, theirs = done.records[-1], local.records[-1]
    assert theirs.pop("sandbox") == "off"  # which no call of a server tells
    assert theirs["cost"] is None  # the price of the model is not known
    assert {**ours, "timestamp": 0, "sessionID": ""} == {**theirs, "timestamp": 0, "sessionID": ""}


async def test_the_server_s_sandbox_is_told_once_a_call_is_enclosed(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "pegboard.toml").write_text('sandbox = "workspace"\n')
    with model() as port, served(tmp_path, port) as server:
        user = CommandLine(server.places, server.directory)
        words = ("--format", "json")
        before = await attach(user, server, *words, "%say nothing to hold")
        done = await attach(user, server, *words, "%bash echo free-1;;%say Done.")

    assert "sandbox" not in before.records[-1]
    if done.code == Exit.CONFIG:
        pytest.skip(done.err)
    assert done.records[-1]["sandbox"] == "workspace"


async def local_run(server: Served, *words: str) -> Done:
    alone = CommandLine(server.places / "alone", server.directory)
    alone.home.mkdir(exist_ok=True)
    alone.env["PEGBOARD_CONFIG_CONTENT"] = server.env["PEGBOARD_CONFIG_CONTENT"]
    return await alone("run", *words)


@pytest.mark.parametrize(
    ("typed", "code", "shown"),
    [("y\n", 0, "All done"), ("s\n", 0, "All done"), ("n\n", 5, "")],
)
async def test_a_person_answers_a_request(
    user: CommandLine, server: Served, typed: str, code: int, shown: str
) -> None:
    async with user.terminal("run", "--attach", server.url, "%bash echo asked") as terminal:
        await terminal.see(QUESTION)
        terminal.type(typed)
        ended = await terminal.end()

    assert ended == code
    assert shown in terminal.shown


async def test_a_person_answers_a_question(user: CommandLine, server: Served) -> None:
    words = ("run", "--attach", server.url, "%question Which colour?|Red|Blue")
    async with user.terminal(*words) as terminal:
        await terminal.see("or an answer of your own")
        terminal.type("2\n")
        code = await terminal.end()

    assert code == 0
    assert "option Blue" in terminal.shown


async def test_the_request_of_another_session_is_not_ours_to_answer(
    user: CommandLine, server: Served, client: Client
) -> None:
    other = client.sessions.create()
    words = ("run", "--attach", server.url, "%wait 500;;%bash echo ours")
    async with user.terminal(*words) as terminal:
        client.prompt_async(other.id, "%bash echo theirs")
        await terminal.see(QUESTION)
        terminal.type("y\n")
        code = await terminal.end()
    waiting = await asyncio.to_thread(waiting_for, client, "echo theirs")
    client.sessions.abort(other.id)

    assert code == 0
    assert "theirs" not in terminal.shown
    assert waiting.session_id == other.id


def waiting_for(client: Client, command: str) -> PermissionRequest:
    """The request about a command, once it waits."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        for request in client.permissions.list():
            if command in request.patterns:
                return request
        time.sleep(0.1)
    raise AssertionError(f"nobody asks for {command}")


async def test_a_request_may_be_answered_elsewhere(
    user: CommandLine, server: Served, client: Client
) -> None:
    words = ("run", "--attach", server.url, "%bash echo hidden;;%bash echo shown")
    async with user.terminal(*words) as terminal:
        await terminal.see(QUESTION)
        first = await asyncio.to_thread(waiting_for, client, "echo hidden")
        client.permissions.reply(first.id, "once")
        second = await asyncio.to_thread(waiting_for, client, "echo shown")
        await terminal.see("echo shown")
        client.permissions.reply(second.id, "reject", "not now")
        code = await terminal.end()

    assert code == 5
    assert "not now" in terminal.shown


async def test_where_nobody_can_be_asked_the_answer_is_no(
    user: CommandLine, server: Served
) -> None:
    at_once = ("--wait-permission", "0")
    words = ("--format", "json", "%bash echo asked;;%say I may not.")
    done = await attach(user, server, *at_once, *words)
    question = await attach(user, server, *at_once, "%question Which?|Red|Blue")

    assert done.code == 5
    assert "there is no terminal to ask on" in done.err
    assert "permission_asked" in kinds(done)
    (call,) = [each["part"]["state"] for each in done.records if each["type"] == "tool_use"]
    assert call["error"].startswith('bash "echo asked" needs a permission')
    assert done.records[-1]["outcome"] == "denied"
    assert question.code == 5


async def test_another_client_of_the_server_has_time_to_answer(
    user: CommandLine, server: Served, client: Client
) -> None:
    process = await user.start("run", "--attach", server.url, "%bash echo asked;;%say I did.")
    request = await asyncio.to_thread(waiting_for, client, "echo asked")
    client.permissions.reply(request.id, "once")
    done = await finished(process)

    assert (done.code, done.out) == (0, "I did.\n")
    assert "waiting 30 s for another client of the server to answer: bash echo asked" in done.err


async def test_nobody_is_waited_for_twice(user: CommandLine, server: Served) -> None:
    words = ("--wait-permission", "0.3", "%bash echo one;;%bash echo two;;%say I may not.")
    done = await attach(user, server, *words)

    assert done.code == 5
    assert done.err.count("waiting 0.3 s") == 1
    assert "there is no terminal to ask on" in done.err


async def test_a_fork_and_a_session_that_is_not_kept(
    user: CommandLine, server: Served, client: Client
) -> None:
    before = {each.id for each in client.sessions.list()}
    gone = await attach(user, server, "--no-save", "%say one")
    left = {each.id for each in client.sessions.list()}
    first = await attach(user, server, "--format", "json", "%say two")
    forked = await attach(user, server, "-c", "--fork", "--format", "json", "%say three")

    assert (gone.code, gone.out, left) == (0, "one\n", before)
    assert first.records[0]["sessionID"] != forked.records[0]["sessionID"]


async def test_variants_and_tools_of_the_server_are_checked(
    user: CommandLine, server: Served
) -> None:
    variant = await attach(user, server, "--variant", "high", "hi")
    tool = await attach(user, server, "--tools", "reed", "hi")
    chosen = await attach(user, server, "--tools", "read", "%say only read")

    assert (variant.code, "has no variant high: it has none" in variant.err) == (2, True)
    assert (tool.code, "tool not found: reed. Did you mean read" in tool.err) == (2, True)
    assert (chosen.code, chosen.out) == (0, "only read\n")


async def test_another_directory_is_worked_in_and_its_code_stays_in_question(
    user: CommandLine, server: Served, tmp_path: Path
) -> None:
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "hello.py").write_text("from pegboard import tool\n")
    words = ("run", "--attach", server.url, "%write new.txt text;;%say done")
    done = await user("-C", str(tmp_path), *words)
    with Client.discover(tmp_path, env=server.env) as other:
        questions = other.questions.list()
        other.questions.reject(questions[0].id)

    assert (done.code, done.out) == (0, "done\n")
    assert (tmp_path / "new.txt").read_text() == "text"
    assert "hello.py" in questions[0].questions[0].question


async def test_an_interrupt_ends_the_turn_on_the_server(
    user: CommandLine, server: Served, client: Client
) -> None:
    process = await user.start("run", "--attach", server.url, "--format", "json", "%slow 300")
    assert process.stdout
    first = json.loads(await asyncio.wait_for(process.stdout.readline(), LIMIT_S))
    process.send_signal(signal.SIGINT)
    done = await finished(process)

    assert done.code == 130
    assert done.records[-1]["outcome"] == "interrupted"
    assert first["sessionID"] not in client.sessions.status()
    last = client.messages(first["sessionID"])[-1]
    assert isinstance(last.info, AssistantMessage)
    assert isinstance(last.info.error, AbortedFailure)


async def test_a_time_limit_ends_the_turn_on_the_server(
    user: CommandLine, server: Served, client: Client
) -> None:
    done = await attach(user, server, "--time-limit", "0.5", "%slow 300")

    assert done.code == 7
    assert client.sessions.status() == {}


async def test_sessions_are_continued_and_chosen(
    user: CommandLine, server: Served, client: Client
) -> None:
    first = await attach(user, server, "--title", "Sums", "--format", "json", "%say one")
    session = first.records[0]["sessionID"]
    second = await attach(user, server, "-c", "%say two")
    third = await attach(user, server, "-s", session, "-m", "fake/fake-model", "%say three")
    missing = await attach(
        user, server, "-s", f"{session[:-1]}{'a' if session[-1] != 'a' else 'b'}", "hi"
    )

    assert [done.out for done in (second, third)] == ["two\n", "three\n"]
    assert client.sessions.get(session).title == "Sums"
    assert len(client.messages(session)) == 6
    assert (missing.code, session in missing.err) == (2, True)


async def test_files_mentions_and_commands_reach_the_model(
    user: CommandLine, server: Served, client: Client
) -> None:
    (server.directory / "notes.txt").write_text("from the notes")
    done = await attach(user, server, "--format", "json", "-f", "notes.txt", "see", "@calc.py")
    unknown = await attach(user, server, "/inti")

    told = str(client.messages(done.records[0]["sessionID"]))
    assert done.code == 0
    assert "from the notes" in told
    assert "def add" in told
    assert unknown.code == 2
    assert "Did you mean init" in unknown.err


async def test_what_the_server_refuses_has_the_exit_code_of_a_local_run(
    user: CommandLine, server: Served
) -> None:
    no_model = await attach(user, server, "-m", "fake/modle", "hi")
    no_agent = await attach(user, server, "--agent", "biuld", "hi")
    no_answer = await attach(user, server, "%err 400")
    trusting = await attach(user, server, "--trust", "hi")

    assert no_model.code == 4
    assert "Did you mean fake/fake-model?" in no_model.err
    assert "The prompt is saved in session" in no_model.err
    assert (no_agent.code, "biuld" in no_agent.err) == (2, True)
    assert no_answer.code == 4
    assert (trusting.code, "--trust" in trusting.err) == (2, True)


async def test_a_server_that_is_not_there_or_locked_says_what_to_do(
    user: CommandLine, server: Served, tmp_path: Path
) -> None:
    gone = await user("run", "--attach", "http://127.0.0.1:9", "hi")
    locked = await attach(user, server, "--password-file", written(tmp_path, "wrong"), "hi")
    stranger = CommandLine(tmp_path, server.directory)
    file = written(tmp_path, server.token)
    token = await attach(stranger, server, "--password-file", file, "%say hello")

    assert (gone.code, "`pegboard serve` starts one" in gone.err) == (1, True)
    assert (locked.code, "is locked" in locked.err) == (4, True)
    assert (token.code, token.out) == (0, "hello\n")


def written(folder: Path, password: str) -> str:
    """A file with this password."""
    (folder / "password").write_text(f"{password}\n")
    return str(folder / "password")


async def test_a_password_of_the_server_s_own_opens_it(tmp_path: Path) -> None:
    file = written(tmp_path, "open sesame")
    (tmp_path / "stranger").mkdir()
    with model() as port, served(tmp_path, port, f"--password-file={file}") as server:
        stranger = CommandLine(tmp_path / "stranger", server.directory)
        done = await attach(stranger, server, "--password-file", file, "%say hello")
        wrong = written(tmp_path / "stranger", "sesame")
        locked = await attach(stranger, server, "--password-file", wrong, "hi")

    assert (done.code, done.out) == (0, "hello\n")
    assert (locked.code, "is locked" in locked.err) == (4, True)


@pytest.mark.parametrize("is_long", [False, True])
async def test_a_turn_survives_lost_connections(
    user: CommandLine, server: Served, tmp_path: Path, is_long: bool
) -> None:
    async with cable(server.url) as line:
        words = (
            "--password-file",
            written(tmp_path, server.token),
            "--format",
            "json",
            "%bash echo free-2;;%slow 8",
        )
        process = await user.start("run", "--attach", line.url, *words)
        assert process.stdout
        await asyncio.wait_for(process.stdout.readline(), LIMIT_S)
        line.cut()
        if is_long:
            await line.unplug()
            await asyncio.to_thread(flood, server)
            await line.plug()
        done = await finished(process)

    assert done.code == 0
    assert done.records[-1]["text"].split() == [f"chunk{at}" for at in range(8)]
    assert kinds(done).count("tool_use") == 1
    assert kinds(done).count("text") == 1


def flood(server: Served) -> None:
    """More events than the server keeps for clients that come back."""
    with server.client() as client:
        for _ in range(9):
            client.post("/tui/append-prompt", json={"text": "x" * (1 << 20)})


def test_without_the_client_the_way_to_get_it_is_told() -> None:
    code = "import sys; sys.modules['pegboard_client'] = None; from {} import main; main()"
    code = code.format(main.__module__)
    words = [sys.executable, "-c", code, "run", "--attach", "http://127.0.0.1:9", "hi"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == Exit.USAGE
    assert "--attach needs pegboard_client; install the client: pip install" in done.stderr
