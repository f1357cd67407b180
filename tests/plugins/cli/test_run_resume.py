"""`pegboard run --resume` and a server that starts again: an interrupted answer goes on."""

import json
from pathlib import Path

import httpx
import pytest

from plugins.cli.commands import CommandLine, finished
from support.models.model_server import ModelServer, call, in_order, say
from support.models.written import until
from support.wire.served import Served, model, served

PROMPT = "%question Go on?|yes|no;;%say I have looked."


async def test_a_run_that_was_killed_goes_on_and_the_model_is_told_of_the_call(
    pegboard: CommandLine,
) -> None:
    bash = call("bash", {"command": "touch begun; sleep 60", "description": "Begin"})
    async with ModelServer(in_order(bash, say("I have looked."))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"}, title="off")
        process = await pegboard.start("run", "do it")
        await until((pegboard.project / "begun").exists)
        process.kill()
        await finished(process)
        done = await pegboard("run", "--resume")
        again = await pegboard("run", "--resume")

    assert (done.code, done.out) == (0, "I have looked.\n")
    assert (again.code, again.out, len(server.requests)) == (0, "", 2)
    assert "was interrupted: there is nothing to do" in again.err
    said = server.requests[1]["messages"]
    results = [each["content"] for each in said if each["role"] == "tool"]
    assert [each.startswith("interrupted: ") for each in results] == [True]
    assert ["do it" in json.dumps(each) for each in said if each["role"] == "user"] == [True]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--resume", "and", "more"), "--resume takes no MESSAGE"),
        (("--resume", "-m", "a/b"), "--resume and --model exclude each other"),
        (("--resume", "--no-save"), "--no-save would drop a session"),
    ],
)
async def test_what_would_be_another_prompt_is_refused(
    pegboard: CommandLine, words: tuple[str, ...], says: str
) -> None:
    done = await pegboard("run", *words)

    assert done.code == 2
    assert says in done.err


async def test_there_must_be_a_session(pegboard: CommandLine) -> None:
    done = await pegboard("run", "--resume")

    assert done.code == 2
    assert "no session to continue" in done.err


def prompted(client: httpx.Client) -> str:
    """Return the id of a session that was sent the prompt."""
    session_id: str = client.post("/session").json()["id"]
    parts = [{"type": "text", "text": PROMPT}]
    client.post(f"/session/{session_id}/prompt_async", json={"parts": parts})
    return session_id


async def waiting(client: httpx.Client) -> str:
    """Return the id of a session that waits for the answer to a question."""
    session_id = prompted(client)
    await until(lambda: bool(client.get("/question").json()))
    return session_id


async def killed(server: Served) -> str:
    """Kill the server in the middle of a call, and return the session's id."""
    with server.client() as client:
        session_id = await waiting(client)
    server.process.kill()
    server.process.wait()
    return session_id


def configure(root: Path, text: str) -> None:
    (root / "config").mkdir()
    (root / "config" / "pegboard.toml").write_text(text)


async def test_a_client_resumes_what_a_killed_server_has_left(tmp_path: Path) -> None:
    with model() as port:
        with served(tmp_path, port) as first:
            session_id = await killed(first)
        with served(tmp_path, port) as second, second.client() as client:
            user = CommandLine(second.places, second.directory)
            done = await user("run", "--attach", second.url, "--resume", "-s", session_id)
            status = client.get("/session/status").json()

    assert (done.code, done.out, status) == (0, "I have looked.\n", {})


@pytest.mark.parametrize("resumes", [True, False])
async def test_a_server_goes_on_with_what_ran_only_if_the_user_says_so(
    tmp_path: Path, *, resumes: bool
) -> None:
    configure(tmp_path, f"resume_on_restart = {str(resumes).lower()}\n")
    (left := tmp_path / "state" / "running").mkdir(parents=True)
    (left / "ses_gone").write_bytes(bytes(tmp_path / "work"))
    with model() as port:
        with served(tmp_path, port) as first:
            session_id = await killed(first)
        with served(tmp_path, port) as second, second.client() as client:

            def texts() -> list[str]:
                turns = client.get(f"/session/{session_id}/message").json()
                parts = [part for turn in turns[1:] for part in turn["parts"]]
                return [part["text"] for part in parts if part["type"] == "text"]

            await until(lambda: texts() == ["I have looked."] or not any(left.iterdir()))
            await until(lambda: not client.get("/session/status").json())
            said = texts()

    assert said == (["I have looked."] if resumes else [])
    assert list(left.iterdir()) == []
    assert "session ses_gone" in (tmp_path / "server.log").read_text()


async def test_a_server_that_is_stopped_leaves_what_runs_to_the_next_one(tmp_path: Path) -> None:
    configure(tmp_path, "resume_on_restart = true\n")
    with model() as port:
        with served(tmp_path, port) as first, first.client() as client:
            session_id = await waiting(client)
        left = [file.name for file in (tmp_path / "state" / "running").iterdir()]

    assert left == [session_id]
