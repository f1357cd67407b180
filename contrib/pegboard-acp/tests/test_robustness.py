"""What an editor does wrong, and how things end: nothing is lost and nothing is left behind."""

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pegboard_acp.jsonrpc import LINE_LIMIT_BYTES, ErrorCode

from support.clients.acp_editor import PEGBOARD, WITHIN_S, AgentError, Editor, Json, Launch

ASKING: Json = {"permission": {"bash": "ask"}}


def shell(command: str) -> Json:
    return {"calls": [{"tool": "bash", "input": {"command": command, "description": "Try it"}}]}


async def never(_: Json) -> object:
    return None


def errors(editor: Editor) -> list[int]:
    return [each["error"]["code"] for each in editor.received if "error" in each]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", ErrorCode.PARSE_ERROR),
        (b"\xff\xfe", ErrorCode.PARSE_ERROR),
        (b'{"method": "\xff"}', ErrorCode.PARSE_ERROR),
        (b'{"params": ' + b"[" * 100_000, ErrorCode.PARSE_ERROR),
        (b"[]", ErrorCode.INVALID_REQUEST),
        (b'{"id": 1.5, "method": "x"}', ErrorCode.INVALID_REQUEST),
        (b'{"id": 7, "method": 7}', ErrorCode.INVALID_REQUEST),
        (b'{"id": 7, "method": "session/none"}', ErrorCode.METHOD_NOT_FOUND),
        (b'{"id": 7, "method": "session/prompt", "params": []}', ErrorCode.INVALID_PARAMS),
        (b'{"id": 7, "method": "session/prompt", "params": null}', ErrorCode.INVALID_PARAMS),
        (
            b'{"id": 7, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}',
            ErrorCode.RESOURCE_NOT_FOUND,
        ),
        (b'{"id": 7, "method": "authenticate", "params": {}}', ErrorCode.INVALID_REQUEST),
        (b'{"id": 7, "method": "logout", "params": {}}', ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_wrong_line_is_answered_and_the_next_one_counts(
    launch: Launch, line: bytes, code: int
) -> None:
    async with launch() as editor:
        editor.write_bytes(line + b"\n")
        await editor.until(lambda: errors(editor))
        await editor.initialized()

    assert errors(editor) == [code]


async def test_what_asks_for_no_answer_gets_none(launch: Launch) -> None:
    async with launch() as editor:
        editor.write_bytes(b"\n  \n")
        editor.write_bytes(b'{"method": "$/cancel_request", "params": {"requestId": 99}}\n')
        editor.write_bytes(b'{"method": "$/cancel_request"}\n')
        editor.write_bytes(b'{"method": "session/cancel", "params": {"sessionId": "x"}}\n')
        editor.write_bytes(b'{"method": "unknown"}\n')
        editor.write_bytes(b'{"id": 99, "result": {}}\n')
        editor.write_bytes(b'{"id": null, "error": {"code": 1, "message": "x"}}\n')
        await editor.initialized()

    assert len(editor.received) == 1


async def test_a_line_beyond_the_limit_is_refused_and_not_stored(launch: Launch) -> None:
    async with launch() as editor:
        await editor.initialized()
        before = _memory_kib(editor)
        editor.write_bytes(b'"' + b"x" * (LINE_LIMIT_BYTES * 3) + b'"\n')
        await editor.until(lambda: errors(editor))
        assert _memory_kib(editor) - before < LINE_LIMIT_BYTES * 3 // 1024
        await editor.initialized()

    assert errors(editor) == [ErrorCode.INVALID_REQUEST]


def _memory_kib(editor: Editor) -> int:
    status = Path(f"/proc/{editor.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


async def test_a_request_whose_id_is_being_answered_is_refused(
    launch: Launch, project: Path
) -> None:
    async with launch(shell("sleep 60"), permission={"bash": "allow"}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
        request = {"id": "one", "method": "session/prompt", "params": params}
        editor.write(request)
        await editor.until(lambda: editor.of("tool_call"))
        editor.write(request)
        await editor.until(lambda: errors(editor))
        editor.notify("session/cancel", sessionId=session)
        await editor.until(lambda: [each for each in editor.received if each.get("id") == "one"])

    assert errors(editor) == [ErrorCode.INVALID_REQUEST]


async def test_a_second_prompt_waits_for_the_first(launch: Launch, project: Path) -> None:
    scripts = [
        {"when": {"prompt": "first"}, "steps": [{"text": "1" * 100}]},
        {"when": {"prompt": "second"}, "steps": [{"text": "2" * 100}]},
    ]
    async with launch(scripts=scripts, stream={"chunk_delay_s": 0.01}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        both = editor.prompting(session, "first"), editor.prompting(session, "second")
        ended = await asyncio.gather(*both)

    assert [each["stopReason"] for each in ended] == ["end_turn", "end_turn"]
    assert editor.text() == "1" * 100 + "2" * 100


async def test_a_cancel_ends_the_turn_and_the_prompts_that_wait(
    launch: Launch, project: Path
) -> None:
    scripts = [
        {"when": {"prompt": "first"}, "steps": [shell("echo begun; sleep 60")]},
        {"when": {"prompt": "third"}, "steps": [{"text": "Still here."}]},
    ]
    async with launch(scripts=scripts, permission={"bash": "allow"}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        both = editor.prompting(session, "first"), editor.prompting(session, "second")
        await editor.until(lambda: "begun" in json.dumps(editor.of("tool_call_update")))
        editor.notify("session/cancel", sessionId=session)
        editor.notify("session/cancel", sessionId=session)
        ended = await asyncio.wait_for(asyncio.gather(*both), WITHIN_S)
        assert [each["stopReason"] for each in ended] == ["cancelled", "cancelled"]
        assert editor.of("tool_call_update")[-1]["status"] == "failed"
        assert (await editor.prompt(session, "third"))["stopReason"] == "end_turn"

    assert editor.text() == "Still here."


async def test_a_cancel_at_once_is_a_cancel(launch: Launch, project: Path) -> None:
    async with launch({"text": "x", "delay_s": 60}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        turn = editor.prompting(session, "Hi")
        editor.notify("session/cancel", sessionId=session)
        assert (await asyncio.wait_for(turn, WITHIN_S))["stopReason"] == "cancelled"
        editor.notify("session/cancel", sessionId=session)  # nothing runs any more
        await editor.initialized()


@pytest.mark.parametrize("answers", [True, False])
async def test_a_cancel_while_the_user_is_asked_ends_the_turn(
    launch: Launch, project: Path, *, answers: bool
) -> None:
    cancelled = asyncio.Event()

    async def after(_: Json) -> object:
        await cancelled.wait()
        return {"outcome": {"outcome": "cancelled"}}

    async with launch(shell("touch made"), **ASKING) as editor:
        editor.answer = after if answers else never
        await editor.initialized()
        session = await editor.new(project)
        turn = editor.prompting(session, "Hi")
        await editor.until(lambda: editor.asked)
        editor.notify("session/cancel", sessionId=session)
        cancelled.set()
        assert (await asyncio.wait_for(turn, WITHIN_S))["stopReason"] == "cancelled"

    assert not (project / "made").exists()


async def test_a_request_that_is_cancelled_by_its_id_says_so(launch: Launch, project: Path) -> None:
    async with launch(shell("sleep 60"), permission={"bash": "allow"}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        turn = editor.prompting(session, "Hi")
        await editor.until(lambda: editor.of("tool_call"))
        number = max(editor.waiting)
        editor.notify("$/cancel_request", requestId=number)
        with pytest.raises(AgentError) as caught:
            await asyncio.wait_for(turn, WITHIN_S)
        assert caught.value.code == ErrorCode.REQUEST_CANCELLED
        assert (await editor.call("session/close", sessionId=session)) == {}


async def test_a_request_and_its_cancel_in_one_write_are_answered_once(
    launch: Launch, project: Path
) -> None:
    async with launch() as editor:
        await editor.initialized()
        made = editor.begin("session/new", {"cwd": str(project), "mcpServers": []})
        editor.notify("$/cancel_request", requestId=max(editor.waiting))
        with pytest.raises(AgentError) as caught:
            await asyncio.wait_for(made, WITHIN_S)
        await editor.new(project)

    assert caught.value.code == ErrorCode.REQUEST_CANCELLED


async def test_an_answer_from_elsewhere_withdraws_the_question(
    launch: Launch, project: Path
) -> None:
    calls = [shell(f"echo {name}")["calls"][0] for name in ("one", "two")]

    async def second_only(request: Json) -> object:
        if request is editor.asked[0]:
            return None  # and the second answer rejects this one, too
        return {"outcome": {"outcome": "selected", "optionId": "reject"}}

    async with launch({"calls": calls}, {"text": "."}, **ASKING) as editor:
        editor.answer = second_only
        await editor.initialized()
        turn = editor.prompting(await editor.new(project), "Hi")
        await editor.until(lambda: len(editor.asked) == 2)
        await asyncio.wait_for(turn, WITHIN_S)

    withdrawn = [each for each in editor.received if each.get("method") == "$/cancel_request"]
    assert [each["params"]["requestId"] for each in withdrawn] == [editor.asked[0]["id"]]


@pytest.mark.parametrize("way", ["input", "output", "term"])
async def test_an_editor_that_leaves_leaves_nothing_behind(
    launch: Launch, project: Path, way: str
) -> None:
    pid_file = project / "pid"
    async with launch(
        shell(f"echo $$ > {pid_file}; sleep 600"), permission={"bash": "allow"}
    ) as editor:
        await editor.initialized()
        editor.prompting(await editor.new(project), "Hi")
        await _exists(pid_file)
        if way == "term":
            editor.process.send_signal(signal.SIGTERM)
            code = await asyncio.wait_for(editor.process.wait(), WITHIN_S)
        elif way == "output":
            editor.close_output()
            code = await asyncio.wait_for(editor.process.wait(), WITHIN_S)
        else:
            code = await editor.closed()

    assert code == 0
    await _gone(int(pid_file.read_text()))


async def test_a_killed_agent_leaves_nothing_behind(launch: Launch, project: Path) -> None:
    pid_file = project / "pid"
    async with launch(
        shell(f"echo $$ > {pid_file}; sleep 600"), permission={"bash": "allow"}
    ) as editor:
        await editor.initialized()
        editor.prompting(await editor.new(project), "Hi")
        await _exists(pid_file)
        editor.process.kill()
        await editor.process.wait()

    await _gone(int(pid_file.read_text()))


async def _exists(file: Path) -> None:
    await _becomes(lambda: file.exists() and file.read_text().strip())


async def _gone(pid: int) -> None:
    await _becomes(lambda: not Path(f"/proc/{pid}").exists())


async def _becomes(condition: Callable[[], object]) -> None:
    """Wait until something holds outside of this process."""
    end = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


PRINTING = """
import os
import subprocess
import sys

from pegboard import hookimpl, tool

print("at import")


@tool
def noisy() -> str:
    \"\"\"Print in every way.\"\"\"
    print("by print")
    os.write(1, b"by write\\\\n")
    subprocess.run(["echo", "by a program"])
    return f"read {sys.stdin.read()!r}"


@hookimpl
async def register_tools():
    return [noisy]
"""


async def test_what_plugins_print_is_not_in_the_protocol(
    launch: Launch, project: Path, environment: dict[str, str]
) -> None:
    folder = Path(environment["XDG_CONFIG_HOME"]) / "pegboard" / "plugins"
    folder.mkdir(parents=True)
    (folder / "printing.py").write_text(PRINTING.replace("\\\\n", "\\n"))
    step = {"calls": [{"tool": "noisy", "input": {}}]}
    async with launch(step, {"text": "{{result.0}}"}, permission={"noisy": "allow"}) as editor:
        await editor.initialized()
        await editor.prompt(await editor.new(project), "Hi")

    assert editor.text() == "read ''"
    assert all(each["jsonrpc"] == "2.0" for each in editor.received)


async def test_ten_thousand_pieces_come_whole_also_to_a_slow_reader(
    launch: Launch, project: Path
) -> None:
    words = "".join(f"{number:05} " for number in range(10_000))
    stream = {"chunk_chars": 6}
    async with launch({"text": words}, stream=stream) as editor:
        await editor.initialized()
        session = await editor.new(project)
        editor.pause()
        turn = editor.prompting(session, "Count")
        await asyncio.sleep(1)  # not to wait for anything: a slow reader is the case
        editor.resume()
        await asyncio.wait_for(turn, WITHIN_S)

    assert editor.text() == words


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_without_an_editor_the_command_says_what_it_is_for(
    environment: dict[str, str], project: Path, stream: str
) -> None:
    done = subprocess.run(
        [*PEGBOARD, "acp"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL if stream == "stdin" else subprocess.PIPE,
        stdout=subprocess.DEVNULL if stream == "stdout" else subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=WITHIN_S,
        check=False,
    )

    assert done.returncode == 2
    assert f"standard {stream[3:]}put is not a pipe: an editor starts" in done.stderr.decode()


async def test_nothing_heavy_is_loaded_before_the_first_session(
    launch: Launch, environment: dict[str, str]
) -> None:
    code = (
        "import atexit, sys; atexit.register(lambda: open({!r}, 'w').write(' '.join(sys.modules)))"
    )
    record = Path(environment["HOME"]) / "modules"
    folder = Path(environment["HOME"]) / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code.format(str(record)))
    environment["PYTHONPATH"] += f":{folder}"
    async with launch() as editor:
        await editor.initialized()
        assert await editor.closed() == 0

    heavy = {"acp", "pydantic", "httpx", "litellm", "fastapi", "sqlite3", "apsw"}
    loaded = set(record.read_text().split())
    assert "pegboard_acp.agent" in loaded
    assert heavy & loaded == set()
