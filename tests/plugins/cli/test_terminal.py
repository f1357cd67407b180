"""`pegboard run` on a terminal: colours, questions, Ctrl-C."""

import asyncio
import json
import signal

import pytest

from pegboard.schema.session import Scope
from pegboard_plugins.cli.dialogs import INSTEAD
from pegboard_plugins.shared.terminal import CONFIRM
from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, Pause, by_step, call, say, text

QUESTION = "One of these keys: "
WRITE = call("write", {"filePath": "new.txt", "content": "new\n"})


async def test_the_answer_comes_with_colours(pegboard: CommandLine) -> None:
    bash = call("bash", {"command": "echo hi", "description": "Say"})
    async with ModelServer(by_step(bash, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"})
        async with pegboard.terminal("run", "hi") as terminal:
            code = await terminal.end()

    assert code == 0
    assert "Done.\n" in terminal.shown
    assert "\x1b[1;36mbash\x1b[0m echo hi" in terminal.shown


async def test_no_color_is_honoured(pegboard: CommandLine) -> None:
    pegboard.env["NO_COLOR"] = "1"
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"})
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.end()

    assert "write new.txt\n" in terminal.shown
    assert "\x1b[3" not in terminal.shown
    assert "\x1b[1" not in terminal.shown.replace("\x1b[1A", "")


@pytest.mark.parametrize(
    ("typed", "written", "code", "answer"),
    [
        (("y",), True, 0, "Done."),
        (("yes, all of it\n", "\x1b[A", "\n", "x", "y"), True, 0, "Done."),
        (("n",), False, 5, ""),
        (("\x04",), False, 5, ""),
        (("w", "put it in docs\n"), False, 5, "Done."),
    ],
)
async def test_a_person_answers_a_request(
    pegboard: CommandLine, typed: tuple[str, ...], written: bool, code: int, answer: str
) -> None:
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"edit": "ask"})
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see(QUESTION)
            for times, each in enumerate(typed[:-1], start=2):
                await terminal.press(each)
                if each != "w":
                    await terminal.see_again(QUESTION, times)
            if "w" in typed:
                await terminal.see(INSTEAD)
            terminal.type(typed[-1])
            ended = await terminal.end()

    assert ended == code
    assert terminal.shown.count("You said no") == (0 if written else 1)
    assert (pegboard.project / "new.txt").exists() is written
    assert answer in terminal.shown
    if "w" in typed:
        assert "put it in docs" in str(server.requests[-1]["messages"])


@pytest.mark.parametrize(
    ("typed", "code", "told"),
    [
        ("2\n", 0, "Blue"),
        ("7\n1\n", 0, "Red"),
        ("the green one\n", 0, "the green one"),
        ("-\n", 5, ""),
    ],
)
async def test_a_person_answers_a_question_of_the_model(
    pegboard: CommandLine, typed: str, code: int, told: str
) -> None:
    options = [{"label": "Red"}, {"label": "Blue", "description": "like the sea"}]
    asked = call("question", {"questions": [{"question": "Which colour?", "options": options}]})
    async with ModelServer(by_step(asked, say("Done."))) as server:
        pegboard.use_model(server.url)
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see("or an answer of your own")
            terminal.type(typed)
            ended = await terminal.end()

    assert "Which colour?" in terminal.shown
    assert "like the sea" in terminal.shown
    assert ended == code
    assert len(server.requests) == (2 if told else 1)
    assert f"Which colour?\\n  {told}" in str(server.requests[-1]["messages"]) or not told


async def test_always_is_asked_once_and_kept_for_the_project(pegboard: CommandLine) -> None:
    again = call("write", {"filePath": "second.txt", "content": "new\n"})
    async with ModelServer(by_step(WRITE, again, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"edit": "ask"})
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see(QUESTION)
            assert "always allows: " in terminal.shown
            terminal.type("a\n")
            code = await terminal.end()

    assert code == 0
    assert terminal.shown.count(QUESTION) == 1
    assert (pegboard.project / "second.txt").exists()


@pytest.mark.parametrize("sentence", ["actually, do not", "you know", "what an idea", "x a"])
async def test_a_sentence_over_the_question_answers_nothing(
    pegboard: CommandLine, sentence: str
) -> None:
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"edit": "ask"})
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see(QUESTION)
            for letter in sentence:
                terminal.type(letter)
                await asyncio.sleep(0)
            await terminal.see_again(QUESTION, 2)
            terminal.type("n")
            assert await terminal.end() == 5

    left = await pegboard("permission", "list", "--format", "json")
    assert left.out == "[]\n"
    assert not (pegboard.project / "new.txt").exists()


@pytest.mark.parametrize(
    ("key", "scope", "other"), [("s", "session", "s"), ("a", "project", "x"), ("u", "user", "y")]
)
async def test_an_answer_that_lasts_needs_enter(
    pegboard: CommandLine, key: str, scope: Scope, other: str
) -> None:
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"edit": "ask"})
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see(QUESTION)
            terminal.type(key)
            await terminal.see(CONFIRM[scope])
            await terminal.press(other)
            await terminal.see_again(QUESTION, 2)
            assert not (pegboard.project / "new.txt").exists()
            await terminal.press(key)
            await terminal.see_again(CONFIRM[scope], 2)
            terminal.type("\n")
            assert await terminal.end() == 0

    assert (pegboard.project / "new.txt").exists()
    left = await pegboard("permission", "list", "--format", "json")
    assert [each["scope"] for each in json.loads(left.out)] == [scope]


async def test_what_wraps_an_interpreter_has_no_answer_for_good(pegboard: CommandLine) -> None:
    bash = call("bash", {"command": "env A=1 bash -c 'echo hi'", "description": "Say"})
    async with ModelServer(by_step(bash, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"bash": "ask"})
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see(QUESTION)
            await terminal.press("a")
            await terminal.see_again(QUESTION, 2)
            terminal.type("y")
            code = await terminal.end()

    assert code == 0
    assert "asked every time" in terminal.shown
    assert "always in this project" not in terminal.shown
    left = await pegboard("permission", "list", "--format", "json")
    assert left.out == "[]\n"


async def test_an_approval_can_be_for_the_agent_alone(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"edit": "ask"})
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see(QUESTION)
            assert "the same for the agent build alone" in terminal.shown
            terminal.type("U")
            await terminal.see("in all of your projects, for this agent alone")
            terminal.type("\n")
            await terminal.end()

    left = await pegboard("permission", "list", "--format", "json")
    assert [(each["scope"], each["agent"]) for each in json.loads(left.out)] == [("user", "build")]


async def test_a_request_shows_the_diff_that_it_is_about(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"edit": "ask"})
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see(QUESTION)
            terminal.type("y\n")
            await terminal.end()

    before, _, _ = terminal.shown.partition(QUESTION)
    assert "permission" in before
    assert "new" in before.rpartition("+ ")[2]


async def test_an_interrupt_at_a_question_stops_the_turn(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"edit": "ask"})
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see(QUESTION)
            terminal.process.send_signal(signal.SIGINT)
            code = await terminal.end()

    assert code == 130
    assert not (pegboard.project / "new.txt").exists()


async def test_a_spinner_shows_that_the_model_is_asked(pegboard: CommandLine) -> None:
    async with ModelServer(by_step([Pause(1.5), *text(""), *say("Done.")])) as server:
        pegboard.use_model(server.url)
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see("thinking")
            code = await terminal.end()

    assert code == 0


async def test_a_session_that_was_stopped_in_its_answer_is_listed(pegboard: CommandLine) -> None:
    async with ModelServer(lambda _: [*text("Half an answer.\n\nAnd"), Pause()]) as server:
        pegboard.use_model(server.url)
        async with pegboard.terminal("run", "tell me") as terminal:
            await terminal.see("Half an answer.")
            terminal.process.send_signal(signal.SIGINT)
            code = await terminal.end()

    assert (code, "the session is saved" in terminal.shown) == (130, True)
    assert "tell me" in (await pegboard("session", "list")).out
