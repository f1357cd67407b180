"""`--allow` and `--deny`: rules of one run."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from pegboard_plugins.chat.command import chat
from pegboard_plugins.shared.frontend.runrules import split_rules
from plugins.cli.commands import CommandLine, Done
from support.models.model_server import Answer, ModelServer, by_step, call, say

ASK = {"bash": "ask", "edit": "ask"}


def bash(line: str) -> Answer:
    return call("bash", {"command": line, "description": "x"})


async def run(
    pegboard: CommandLine, *words: str, answers: tuple[Answer, ...], **settings: object
) -> tuple[Done, list[str]]:
    """One prompt, and what the model read as the result of each call."""
    async with ModelServer(by_step(*answers, say("Done."))) as server:
        pegboard.use_model(server.url, **{"permission": ASK, **settings})
        done = await pegboard("run", *words, "go")
    last = [body for body in server.requests if body.get("tools")][-1]
    messages = last["messages"]
    assert isinstance(messages, list)
    return done, [each["content"] for each in messages if each["role"] == "tool"]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Bash(git *) Edit", ["Bash(git *)", "Edit"]),
        ("Bash(git log:*),Read, edit", ["Bash(git log:*)", "Read", "edit"]),
        ("bash(echo (a, b) c)", ["bash(echo (a, b) c)"]),
        (" , ", []),
    ],
)
def test_a_list_has_its_rules_between_commas_and_blanks(text: str, rules: list[str]) -> None:
    assert list(split_rules(text)) == rules


@pytest.mark.parametrize("option", ["--allow", "--allowedTools", "--allowed-tools"])
async def test_what_is_allowed_is_not_asked_and_the_rest_is_denied(
    pegboard: CommandLine, option: str
) -> None:
    _, (said, listed) = await run(
        pegboard, f"{option}=Bash(echo *)", answers=(bash("echo hello"), bash("ls"))
    )
    _, (again,) = await run(pegboard, answers=(bash("echo hello"),))
    approvals = await pegboard("permission", "list", "--format", "json")

    assert said.startswith("hello\n")
    assert "nobody is there to be asked" in listed
    assert "nobody is there to be asked" in again
    assert json.loads(approvals.out) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"permission": {"bash": {"*": "ask", "rm *": "deny"}}},
        {"agent": {"build": {"permission": {"bash": {"rm *": "deny"}}}}},
    ],
)
async def test_an_allow_of_the_run_loosens_no_deny(
    pegboard: CommandLine, settings: dict[str, object]
) -> None:
    (pegboard.project / "a").write_text("x")
    _, (found,) = await run(
        pegboard,
        "--allow",
        "bash",
        "--allow",
        "Bash(rm:*) Edit",
        answers=(bash("rm a"),),
        **settings,
    )

    assert "denied by rule bash" in found
    assert (pegboard.project / "a").exists()


async def test_an_allow_of_the_run_answers_no_guard(pegboard: CommandLine) -> None:
    (pegboard.project / ".env").write_text("KEY=secret-word")
    _, (found,) = await run(
        pegboard, "--allow", "bash Read", answers=(call("read", {"filePath": ".env"}),)
    )

    assert "secret-word" not in found


@pytest.mark.parametrize("option", ["--deny", "--disallowedTools"])
async def test_nothing_loosens_a_deny_of_the_run(pegboard: CommandLine, option: str) -> None:
    everything = {
        "permission": "allow",
        "agent": {"build": {"permission": {"bash": {"echo *": "allow"}}}},
    }
    _, (found, read) = await run(
        pegboard,
        *("--auto", "--allow", "Bash", option, "Bash(echo:*) Read(secrets/**)"),
        answers=(bash("echo hello"), bash("cat secrets/a")),
        **everything,
    )

    assert 'denied by rule bash "echo *" (--deny)' in found
    assert "denied by rule read" in read


async def test_the_rules_of_a_run_hold_in_its_subagents(pegboard: CommandLine) -> None:
    task = {"description": "x", "prompt": "child-work", "subagent_type": "general"}
    results: list[str] = []

    def answer(body: dict[str, Any]) -> Answer:
        asked = [str(each["content"]) for each in body["messages"] if each["role"] == "user"]
        found = [each["content"] for each in body["messages"] if each["role"] == "tool"]
        if not any("child-work" in each for each in asked):
            return say("Done.") if found else call("task", task)
        results[:] = found
        return say("Done.") if found else bash("echo hello")

    async with ModelServer(answer) as server:
        pegboard.use_model(server.url, permission={**ASK, "task": "allow"})
        await pegboard("run", "--allow", "Bash(echo *)", "go")
        allowed = results[0]
        pegboard.use_model(server.url, permission="allow")
        await pegboard("run", "--deny", "Bash(echo *)", "go")

    assert allowed.startswith("hello\n")
    assert 'denied by rule bash "echo *" (--deny)' in results[0]


async def test_a_denied_tool_is_not_offered(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "--deny", "Bash,webfetch,mcp__clock__*", "go")
    (body,) = [each for each in server.requests if each.get("tools")]

    names = {tool["function"]["name"] for tool in body["tools"]}  # type: ignore[attr-defined]
    assert done.code == 0
    assert names & {"bash", "webfetch", "read"} == {"read"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--deny", "Teleport"), "--deny: Teleport: Pegboard has no tool Teleport"),
        (("--allow", "Bash(ls"), "--allow: Bash(ls: not a rule"),
        (("--deny", "bsh"), "--deny: no tool asks for the permission bsh; did you mean bash?"),
        (("--deny", "write"), "the permission write; did you mean edit?"),
        (("--attach", "http://127.0.0.1:9", "--allow", "Bash"), "the server's to decide"),
    ],
)
async def test_a_rule_that_is_none_is_refused_before_anything_runs(
    pegboard: CommandLine, words: tuple[str, ...], said: str
) -> None:
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", *words, "go")

    assert (done.code, server.requests) == (2, [])
    assert said in done.err


def test_a_chat_of_a_server_takes_no_rules(pegboard: CommandLine) -> None:
    runner = CliRunner()
    said = ["--attach", "http://127.0.0.1:1", "--allow", "edit"]
    done = runner.invoke(chat, said, obj=pegboard.project)

    assert done.exit_code == 2
    assert "--allow is the server's to decide" in done.output
