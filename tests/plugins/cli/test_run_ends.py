"""`pegboard run` ends by itself, whatever the model does, and says why."""

import asyncio
import json
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from plugins.cli.commands import CommandLine, Done, HalfAnswer, finished
from support.models.model_server import (
    Answer,
    ModelServer,
    Piece,
    by_step,
    call,
    chunk,
    failure,
    finish,
    in_order,
    say,
    text,
)

DONE = b"data: [DONE]\n\n"
DENY = {"*": "allow", "bash": {"*": "allow", "touch *": "deny"}}


async def run(
    pegboard: CommandLine, *answers: Answer, **settings: object
) -> tuple[Done, Sequence[dict[str, Any]]]:
    """One prompt to a model that answers so, and the requests that it got."""
    async with ModelServer(in_order(*answers)) as server:
        settings = {"permission": {"*": "allow"}, "retry": {"cap_s": 0.01}, **settings}
        pegboard.use_model(server.url, title="off", **settings)
        return await pegboard("run", "--format", "json", "hi"), server.requests


@pytest.mark.parametrize(
    ("answer", "code", "requests", "says"),
    [
        ([*text("I am done."), *finish("tool_calls")], 0, 1, "said that calls follow"),
        ([*text("I am done."), DONE], 0, 1, ""),
        (finish("tool_calls"), 4, 2, "the model's answer was empty (2 times)"),
        ([DONE], 4, 2, "the model's answer was empty (2 times)"),
        ([chunk({"reasoning_content": "hm"}), *finish("tool_calls")], 4, 2, "was empty (2 times)"),
    ],
)
async def test_a_server_that_never_calls_gets_so_many_requests_and_no_more(
    pegboard: CommandLine, answer: list[Piece], code: int, requests: int, says: str
) -> None:
    done, sent = await run(pegboard, answer)

    assert (done.code, len(sent)) == (code, requests)
    told = [each for each in done.records if each["type"] in ("warning", "error")]
    assert says in str(told) + done.err
    assert bool(told) is bool(says)
    assert done.records[-1]["text"] == ("I am done." if code == 0 else "")


@pytest.mark.parametrize(
    ("answer", "code", "requests", "says"),
    [
        (call("nope", {"x": 1}), 1, 3, "No call of the last 3 steps could be made"),
        (call("write", '{"filePath": "a'), 1, 3, "the arguments are not valid JSON"),
        (call("bash", {"command": "touch a", "description": "t"}), 5, 5, "`pegboard explain`"),
    ],
)
async def test_calls_that_cannot_be_made_end_it_with_their_code(
    pegboard: CommandLine, answer: list[Piece], code: int, requests: int, says: str
) -> None:
    done, sent = await run(pegboard, answer, permission=DENY)

    assert (done.code, len(sent)) == (code, requests)
    assert says in done.err
    assert done.records[-1]["error"]["name"] == "CallsError"


async def test_the_end_of_the_steps_is_told_before_and_names_the_key(
    pegboard: CommandLine,
) -> None:
    step = call("bash", {"command": "echo hi", "description": "Say"})
    done, sent = await run(pegboard, step, budget={"run": {"steps": 5}})

    assert (done.code, len(sent)) == (6, 5)
    [warning] = [each["message"] for each in done.records if each["type"] == "warning"]
    assert warning.startswith("4 of 5 steps for this run are taken; `budget.run.steps`")
    assert "no more steps than 5 for this run; `budget.run.steps` in the conf" in done.err


async def test_a_prompt_that_another_process_s_run_refuses_is_not_shown_to_the_model(
    pegboard: CommandLine,
) -> None:
    wait = "until [ -e may-end ]; do sleep 0.05; done"
    answers = (call("bash", {"command": wait, "description": "Wait"}), say("first"), say("third"))
    async with ModelServer(in_order(say("begun"), *answers)) as server:
        pegboard.use_model(server.url, title="off", permission={"*": "allow"})
        session = (await pegboard("run", "--format", "json", "begin")).records[0]["sessionID"]
        first = asyncio.create_task(pegboard("run", "-s", session, "hi"))
        async with asyncio.timeout(30):
            while len(server.requests) < 2:  # noqa: ASYNC110 - the server has no event
                await asyncio.sleep(0.05)
        refused = await pegboard("run", "-s", session, "an interjection")
        (pegboard.project / "may-end").touch()
        await first
        await pegboard("run", "-s", session, "again")
        asked = [each["content"] for each in server.requests[-1]["messages"]]

    assert (refused.code, refused.out) == (1, "")
    assert f"session {session} is busy; wait for its turn to end, or abort it\n" in refused.err
    assert "an interjection" not in str(asked)
    assert "again" in str(asked)


async def test_what_was_found_is_counted_once(pegboard: CommandLine) -> None:
    (pegboard.project / "a.txt").write_text("needle\n")
    calls = call("grep", {"pattern": "needle"}), call("glob", {"pattern": "*.txt"})
    async with ModelServer(by_step(*calls, say("Done."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "hi")

    told = [line for line in done.err.splitlines() if line.startswith("  ")]
    assert told == ["  1 match", "  1 file"]


async def test_the_text_of_a_failed_attempt_is_in_no_output(pegboard: CommandLine) -> None:
    broken = [*text("I look."), *finish("network_error")]
    async with ModelServer(in_order(broken, broken, say("I look. Done."))) as server:
        settings = {"permission": {"*": "allow"}, "retry": {"cap_s": 0.01}}
        pegboard.use_model(server.url, title="off", **settings)
        done = await pegboard("run", "hi")

    assert (done.code, done.out) == (0, "I look. Done.\n")
    assert "'network_error'" in done.err


async def test_the_text_of_a_failed_attempt_has_no_record(pegboard: CommandLine) -> None:
    broken = [*text("I look."), *finish("network_error")]

    done, _ = await run(pegboard, broken, broken, say("I look. Done."))

    texts = [each["part"]["text"] for each in done.records if each["type"] == "text"]
    assert texts == ["I look. Done."]


TASK = {"description": "look", "prompt": "Look.", "subagent_type": "explore"}
BUSY = failure(429, "slow down", headers={"retry-after-ms": "20"})


async def test_the_wait_of_a_subagent_has_a_record(pegboard: CommandLine) -> None:
    done, _ = await run(pegboard, call("task", TASK), BUSY, say("Looked."), say("Done."))

    [waited] = [each for each in done.records if each["type"] == "retry"]
    assert (done.code, waited["attempt"], waited["message"]) == (0, 1, "fake: slow down (429)")
    assert waited["waiting"] != waited["sessionID"]


async def test_the_wait_of_a_subagent_is_a_line_below_its_call(pegboard: CommandLine) -> None:
    answers = (call("task", TASK), BUSY, say("Looked."), say("Done."))
    async with ModelServer(in_order(*answers)) as server:
        pegboard.use_model(server.url, title="off", permission={"*": "allow"})
        done = await pegboard("run", "hi")

    head, wait = done.err.split("\n")[:2]
    assert head.startswith("task explore: look")
    assert wait == "  Retrying in 0 s (attempt 2): fake: slow down (429)"


async def test_the_text_of_the_last_attempt_is_shown_once(pegboard: CommandLine) -> None:
    broken = [*text("I look."), *finish("network_error")]

    done, _ = await run(pegboard, broken, retry={"cap_s": 0.01, "attempts": 2})

    texts = [each["part"]["text"] for each in done.records if each["type"] == "text"]
    assert (done.code, texts) == (4, ["I look."])


async def test_a_hangup_that_a_shell_repeats_until_the_end_does_not_cut_the_saving_short(
    pegboard: CommandLine,
) -> None:
    script = HalfAnswer()
    async with ModelServer(script) as server:
        pegboard.use_model(server.url)
        process = await pegboard.start("run", "hi")
        await asyncio.wait_for(script.asked.wait(), 60)
        ending = asyncio.create_task(finished(process))
        while not ending.done():
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGHUP)
            await asyncio.sleep(0.001)
        done = await ending

    assert (done.code, done.err.count("the session is saved")) == (130, 1)


async def test_a_hook_that_stops_the_turn_is_no_interrupt(pegboard: CommandLine) -> None:
    pegboard.env["HOME"] = str(pegboard.home)
    answer = json.dumps({"continue": False, "stopReason": "the build is red"})
    hook = {"type": "command", "command": f"echo '{answer}'"}
    settings = pegboard.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))

    done, requests = await run(pegboard, call("list", {}), say("Done."))

    result = done.records[-1]
    assert (done.code, result["outcome"], len(requests)) == (5, "denied", 1)
    assert "a PreToolUse hook stopped the turn: the build is red" in done.err
    assert str(settings) in result["error"]["data"]["message"]
    assert "interrupted" not in done.err
