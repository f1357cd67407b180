"""`pegboard run` on pipes: streams, records, exit codes."""

import asyncio
import json
import signal

import pytest

from pegboard.cli import Exit
from plugins.cli.commands import COMMAND, CommandLine, Done, HalfAnswer, finished
from support.models.model_server import (
    Answer,
    ModelServer,
    Pause,
    by_step,
    call,
    failure,
    finish,
    in_order,
    reasoning,
    say,
    text,
    usage,
)

ALLOW_ALL = {"*": "allow"}


async def run(pegboard: CommandLine, *answers: Answer, words: tuple[str, ...] = ("hi",)) -> Done:
    """One prompt to a model that answers so, by the steps of the turn."""
    async with ModelServer(by_step(*answers)) as server:
        pegboard.use_model(server.url, permission=ALLOW_ALL)
        return await pegboard("run", *words)


def result_of(done: Done) -> dict[str, object]:
    """The final record, without what differs from run to run."""
    record = done.records[-1]
    assert record.pop("timestamp") > 1_700_000_000_000
    assert str(record.pop("sessionID")).startswith("ses_")
    return record


async def test_the_answer_is_all_of_standard_output(pegboard: CommandLine) -> None:
    done = await run(
        pegboard, call("bash", {"command": "echo from bash", "description": "Say"}), say("Done.")
    )

    assert (done.code, done.out) == (0, "Done.\n")
    assert done.err.startswith("bash echo from bash\n  from bash\n$0.0400 · 20 tokens in, 10 out")
    assert "2 steps" in done.err
    assert "\x1b" not in done.out + done.err


async def test_records_have_the_protocol_s_shapes(pegboard: CommandLine) -> None:
    done = await run(
        pegboard,
        call("bash", {"command": "echo hi", "description": "Say"}),
        [*reasoning("I think"), *say("Done.")],
        words=("--format", "json", "hi"),
    )

    types = [record["type"] for record in done.records]
    assert types == [
        "step_start",
        "tool_use",
        "step_finish",
        "step_start",
        "reasoning",
        "text",
        "step_finish",
        "result",
    ]
    sessions = {record["sessionID"] for record in done.records}
    assert len(sessions) == 1
    tool = done.records[1]["part"]
    assert (tool["type"], tool["tool"], tool["state"]["status"]) == ("tool", "bash", "completed")
    assert done.records[5]["part"]["text"] == "Done."
    assert result_of(done) == {
        "type": "result",
        "outcome": "done",
        "exit_code": 0,
        "cost": pytest.approx(0.04),
        "tokens": {"input": 20, "output": 10, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        "text": "Done.",
        "sandbox": "off",
    }


async def test_a_tool_that_fails_is_a_record_too(pegboard: CommandLine) -> None:
    done = await run(
        pegboard,
        call("read", {"filePath": "no-such-file"}),
        say("It is not there."),
        words=("--format", "json", "hi"),
    )

    tools = [record["part"] for record in done.records if record["type"] == "tool_use"]
    assert [tool["state"]["status"] for tool in tools] == ["error"]
    assert done.code == 0


async def test_words_stdin_and_files_reach_the_model(pegboard: CommandLine) -> None:
    (pegboard.project / "notes.txt").write_text("from the file")
    async with ModelServer(by_step(say("ok"))) as server:
        pegboard.use_model(server.url)
        done = await pegboard(
            "run", "-f", "notes.txt", "say", "a b", "-", "--", "--help", stdin="from stdin"
        )

    assert done.code == 0
    content = str([body["messages"] for body in server.requests if body.get("tools")])
    assert "say a b from stdin --help" in content
    assert "from the file" in content


async def test_without_a_terminal_a_question_is_a_no_with_a_reason(pegboard: CommandLine) -> None:
    async with ModelServer(
        by_step(call("bash", {"command": "ls", "description": "List"}), say("I may not."))
    ) as server:
        pegboard.use_model(server.url, permission={"bash": "ask"})
        done = await pegboard("run", "--format", "json", "list files")

    assert done.code == 5
    result = result_of(done)
    assert (result["outcome"], result["exit_code"]) == ("denied", 5)
    assert "there is no terminal to ask on" in done.err


async def test_a_denial_that_the_agent_gets_round_is_no_failure(pegboard: CommandLine) -> None:
    (pegboard.project / "a.txt").write_text("text")
    async with ModelServer(
        by_step(
            call("bash", {"command": "cat a.txt", "description": "Read"}),
            call("read", {"filePath": "a.txt"}),
            say("It says: text"),
        )
    ) as server:
        pegboard.use_model(server.url, permission={"bash": "deny"})
        done = await pegboard("run", "read a.txt")

    assert (done.code, done.out) == (0, "It says: text\n")


@pytest.mark.parametrize(("status", "name"), [(401, "ProviderAuthError"), (400, "APIError")])
async def test_a_provider_s_refusal_is_its_own_code(
    pegboard: CommandLine, status: int, name: str
) -> None:
    done = await run(pegboard, failure(status, "no such luck"), words=("--format", "json", "hi"))

    assert done.code == 4
    result = result_of(done)
    assert result["outcome"] == "provider"
    assert result["error"]["name"] == name  # type: ignore[index]  # JSON
    assert "no such luck" in str(result["error"])
    assert done.err.count("error: ") == 1


@pytest.mark.parametrize(
    ("reason", "said"), [("length", "output limit"), ("content_filter", "content filter")]
)
async def test_an_answer_that_was_cut_is_no_success(
    pegboard: CommandLine, reason: str, said: str
) -> None:
    done = await run(pegboard, [*text("half an answer"), *finish(reason, usage=usage())])

    assert (done.code, done.out) == (1, "half an answer\n")
    assert said in done.err


async def test_a_missing_key_says_where_it_goes(pegboard: CommandLine) -> None:
    done = await pegboard("run", "-m", "openai/gpt-5", "hi")

    assert done.code == 4
    assert "OPENAI_API_KEY" in done.err


async def test_an_unknown_model_is_named_and_the_prompt_is_kept(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("It is 4."))) as server:
        pegboard.use_model(server.url)
        refused = await pegboard("run", "-m", "fake/modle", "what is 2+2?")
        session = next(word for word in refused.err.split() if word.startswith("ses_")).rstrip(":")
        went_on = await pegboard("run", "-s", session, "-m", "fake/model", "go on")

    assert refused.code == 4
    assert "model not found: fake/modle. Did you mean fake/model?" in refused.err
    assert "The prompt is saved in session" in refused.err
    assert (went_on.code, went_on.out) == (0, "It is 4.\n")
    assert "what is 2+2?" in str(server.requests)


async def test_an_unknown_agent_is_named_with_its_neighbours(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("ok"))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "--agent", "biuld", "hi")
        assert server.requests == []
        session = next(word for word in done.err.split() if word.startswith("ses_")).rstrip(":")
        went_on = await pegboard("run", "-s", session, "--agent", "build", "go on")

    assert done.code == 2
    assert "agent not found: biuld. Did you mean build" in done.err
    assert f"-s {session} --agent NAME go on" in done.err
    assert (went_on.code, went_on.out) == (0, "ok\n")


async def test_the_last_session_is_continued(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("ok"))) as server:
        pegboard.use_model(server.url)
        nothing = await pegboard("run", "-c", "hi")
        first = await pegboard("run", "--title", "Sums", "the first prompt")
        second = await pegboard("run", "-c", "the second prompt")
        listed = await pegboard("session", "list", "--format", "json")

    assert nothing.code == 2
    assert "there is no session to continue" in nothing.err
    assert (first.code, second.code) == (0, 0)
    assert "the first prompt" in str(server.requests[-1]["messages"])
    assert [row["title"] for row in json.loads(listed.out)] == ["Sums"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("",), "the message is empty"),
        (("-f", "missing.txt", "hi"), "cannot read missing.txt"),
        (("-s", "ses_nothing", "hi"), "session not found: ses_nothing"),
        (("-s", "nonsense", "hi"), "nonsense"),
    ],
)
async def test_input_that_cannot_be_used_is_said(
    pegboard: CommandLine, words: tuple[str, ...], said: str
) -> None:
    done = await run(pegboard, say("never"), words=words)

    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1


async def test_a_broken_config_names_its_file_and_a_record_still_ends_the_stream(
    pegboard: CommandLine,
) -> None:
    (pegboard.project / "pegboard.toml").write_text("model = [")

    done = await pegboard("run", "--format", "json", "hi")

    assert done.code == 3
    assert "pegboard.toml" in done.err
    assert [record["type"] for record in done.records] == ["result"]
    assert done.records[0]["outcome"] == "config"


async def test_code_without_trust_is_left_out_and_said(pegboard: CommandLine) -> None:
    (pegboard.project / "tool").mkdir()
    (pegboard.project / "tool" / "hello.py").write_text(
        "from pegboard import tool\n\nprint('printed by a tool file')\n\n"
        "@tool\nasync def hello(name: str) -> str:\n"
        "    '''Greet someone.'''\n    return f'Hello, {name}!'\n"
    )
    async with ModelServer(by_step(call("hello", {"name": "Ada"}), say("Greeted."))) as server:
        pegboard.use_model(server.url, permission=ALLOW_ALL)
        without = await pegboard("run", "greet Ada")
        trusted = await pegboard("run", "--trust", "--format", "json", "greet Ada")

    assert "not loaded: tool/hello.py (not trusted);" in without.err
    assert "printed by a tool file" not in without.err + without.out
    assert "printed by a tool file" in trusted.err
    outputs = [each["part"]["state"] for each in trusted.records if each["type"] == "tool_use"]
    assert [state["output"] for state in outputs] == ["Hello, Ada!"]


async def test_a_budget_ends_the_turn_before_it_is_overspent(pegboard: CommandLine) -> None:
    again = call("bash", {"command": "echo hi", "description": "Say"})
    done = await run(pegboard, again, words=("--budget-usd", "0.001", "--format", "json", "hi"))

    assert done.code == 6
    result = result_of(done)
    assert result["outcome"] == "budget"
    assert "$0.0010 for this run" in str(result["error"])


async def test_the_time_limit_stops_the_turn(pegboard: CommandLine) -> None:
    done = await run(
        pegboard,
        [*text("thinking"), Pause()],
        words=("--time-limit", "1", "--format", "json", "hi"),
    )

    assert done.code == 7
    assert result_of(done)["outcome"] == "time_limit"
    assert "the time limit is over" in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_stops_the_turn_and_keeps_the_session(
    pegboard: CommandLine, number: signal.Signals
) -> None:
    script = HalfAnswer()
    async with ModelServer(script) as server:
        pegboard.use_model(server.url)
        process = await pegboard.start("run", "hi")
        await asyncio.wait_for(script.asked.wait(), 60)
        process.send_signal(number)
        done = await finished(process)
        shown = await pegboard("session", "show", "--format", "json")
        server._script = in_order(say("Here I am again."))
        went_on = await pegboard("run", "-c", "go on")

    assert done.code == 130
    assert "interrupted; the session is saved" in done.err
    assert "MessageAbortedError" in shown.out
    assert (went_on.code, went_on.out) == (0, "Here I am again.\n")


async def test_a_reader_that_leaves_ends_the_command_without_a_traceback(
    pegboard: CommandLine,
) -> None:
    long = "word " * 40_000
    async with ModelServer(by_step(say(long))) as server:
        pegboard.use_model(server.url)
        process = await pegboard.start("run", "hi")
        assert process.stdout
        process.stdout._transport.close()  # type: ignore[attr-defined]  # as `head` does
        code, err = await asyncio.gather(process.wait(), process.stderr.read())  # type: ignore[union-attr]

    assert code == 1
    assert b"Traceback" not in err


async def test_closed_standard_streams_do_no_harm(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("ok"))) as server:
        pegboard.use_model(server.url)
        shell = await asyncio.create_subprocess_shell(
            f"{COMMAND} run hi <&- && {COMMAND} run hi >&-",
            cwd=pegboard.project,
            env=pegboard.environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        done = await finished(shell)

    assert (done.code, done.out) == (0, "ok\n")
    assert "Traceback" not in done.err


async def test_the_sandbox_in_force_is_told(pegboard: CommandLine) -> None:
    command = call("bash", {"command": "echo x > made; cat made", "description": "Write"})
    words = ("--sandbox", "workspace", "--format", "json", "hi")
    done = await run(pegboard, command, say("Done."), words=words)

    if done.code == Exit.CONFIG:
        pytest.skip(done.err)
    assert done.err.startswith("sandbox: workspace (")
    assert done.records[-1]["sandbox"] == "workspace"
    [tool] = [record["part"] for record in done.records if record["type"] == "tool_use"]
    assert tool["state"]["metadata"]["sandbox"] == "workspace"


async def test_the_hosts_of_a_list_are_told(pegboard: CommandLine) -> None:
    command = call("bash", {"command": "echo x", "description": "Say"})
    hosts = ["*.Pythonhosted.org", "pypi.org"]
    async with ModelServer(by_step(command, say("Done."))) as server:
        pegboard.use_model(server.url, permission=ALLOW_ALL, sandbox_network=hosts)
        done = await pegboard("run", "--sandbox", "strict", "--format", "json", "hi")
        shown = await pegboard("config", "show", "--format", "json")

    if done.code == Exit.CONFIG:
        pytest.skip(done.err)
    assert done.err.startswith("sandbox: strict (bubblewrap, network to 2 hosts)\n")
    assert done.records[-1]["sandbox_hosts"] == ["*.pythonhosted.org", "pypi.org"]
    [tool] = [record["part"] for record in done.records if record["type"] == "tool_use"]
    assert tool["state"]["metadata"]["sandbox_hosts"] == 2
    assert '"pypi.org"' in shown.out


async def test_a_sandbox_that_cannot_be_had_is_an_error_with_the_way_out(
    pegboard: CommandLine,
) -> None:
    pegboard.env["PEGBOARD_DISABLE_PLUGINS"] = "sandbox,litellm"

    done = await run(pegboard, say("Done."), words=("--sandbox", "strict", "hi"))

    assert done.code == Exit.CONFIG
    assert 'no plugin encloses as "strict"; enable one, or set sandbox = "off"' in done.err
    assert 'sandbox = "off"' in done.err
    assert len(done.err.splitlines()) == 1
