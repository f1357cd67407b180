"""A choice on a terminal, where an argument was left out."""

import asyncio
import json
import os
import signal

import pytest

from pegboard.cli import Exit
from pegboard_plugins.shared.terminal import interruptible
from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, say


async def test_a_session_is_chosen_by_its_number(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("First answer."))) as server:
        pegboard.use_model(server.url)
        await pegboard("run", "first")
    async with ModelServer(by_step(say("Second answer."))) as server:
        pegboard.use_model(server.url)
        await pegboard("run", "second")
    async with pegboard.terminal("session", "show") as terminal:
        await terminal.see("Which session? [1]:")
        terminal.type("2\n")
        code = await terminal.end()
    last = await pegboard("session", "show")

    assert code == 0
    assert "First answer." in terminal.shown.partition("Which session?")[2]
    assert "Second answer." in last.out


async def test_a_model_is_chosen_for_the_doctor(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("ready"), say("ready"), say("ready"))) as server:
        pegboard.use_model(server.url)
        async with pegboard.terminal("doctor", "model") as terminal:
            await terminal.see("Which model? [1]:")
            terminal.type("1\n")
            await terminal.end()
    pegboard.configure()
    nobody = await pegboard("doctor", "model")

    assert "fake/model" in terminal.shown
    assert (nobody.code, "say which: pegboard doctor model" in nobody.err) == (2, True)


async def test_the_end_of_input_leaves_the_choice(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("One."), say("Two."))) as server:
        pegboard.use_model(server.url)
        await pegboard("run", "first")
        await pegboard("run", "second")
    async with pegboard.terminal("session", "show") as terminal:
        await terminal.see("Which session? [1]:")
        terminal.type("\x04")
        code = await terminal.end()

    assert code == Exit.INTERRUPTED
    assert terminal.shown.endswith("\n")


async def test_run_offers_the_models_where_none_is_chosen(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("One."), say("Two."))) as server:
        pegboard.use_model(server.url)
        file = pegboard.home / "config" / "opencode.json"
        settings = json.loads(file.read_text())
        del settings["model"]
        pegboard.configure(**settings)
        headless = await pegboard("run", "hi")
        async with pegboard.terminal("run", "hi") as terminal:
            await terminal.see("Which model? [1]:")
            terminal.type("no such thing\n")
            await terminal.see("none has no such thing in it")
            terminal.type("fake\n")
            await terminal.see("Which model? [1]:")
            terminal.type("1\n")
            code = await terminal.end()

    assert (headless.code, "none is chosen" in headless.err) == (4, True)
    assert "no model is selected yet" not in headless.err
    assert code == 0
    assert "`pegboard config set model fake/model` keeps this choice" in terminal.shown
    assert "One." in terminal.shown


def test_ctrl_c_ends_a_question_at_once() -> None:
    passed = []

    async def ask() -> None:
        with interruptible():
            os.kill(os.getpid(), signal.SIGINT)
            passed.append("the question")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(ask())
    assert passed == []


async def test_the_newest_models_are_offered_first(pegboard: CommandLine) -> None:
    pegboard.env["ANTHROPIC_API_KEY"] = "k"
    names = ["say-2", "say-3-5", "say-3", "say-3-20250101", "say-10", "plain"]
    limit = {"context": 100_000, "output": 4_000}
    models = {**{name: {"limit": limit} for name in names}, "no-tools-99": {"tool_call": False}}
    options = {"baseURL": "http://127.0.0.1:9", "apiKey": "k"}
    pegboard.configure(
        provider={"fake": {"options": options, "models": models}}, enabled_providers=["fake"]
    )

    async with pegboard.terminal("run", "hi") as terminal:
        await terminal.see("Which model? [1]:")
        shown = [line.split() for line in terminal.shown.splitlines() if "fake/" in line]
        terminal.type("\x04")
        await terminal.end()

    assert [each[1] for each in shown] == [
        "fake/say-10",
        "fake/say-3-5",
        "fake/say-3",
        "fake/say-3-20250101",
        "fake/say-2",
        "fake/plain",
    ]
    assert all(len(each) == 2 for each in shown)


@pytest.mark.parametrize("on_a_terminal", [True, False])
async def test_a_first_run_says_what_was_found_and_asks_nothing(
    pegboard: CommandLine, *, on_a_terminal: bool
) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1")
    async with server:
        port = server.sockets[0].getsockname()[1]
        pegboard.env["OLLAMA_HOST"] = f"127.0.0.1:{port}"
        if on_a_terminal:
            async with pegboard.terminal("run", "hi") as terminal:
                code = await terminal.end()
            shown = terminal.shown
        else:
            done = await pegboard("run", "hi")
            code, shown = done.code, done.err
            assert done.out == ""

    assert code == 4
    assert "no model is selected yet" in shown
    assert "API keys: none found" in shown
    assert f"local model servers: ollama (127.0.0.1:{port})" in shown
    assert "`-m ollama/MODEL` asks it" in shown
    for way in ("pegboard auth login PROVIDER", "pegboard config set model", "pegboard demo"):
        assert way in shown
    assert "Which model?" not in shown


async def test_a_key_that_opens_no_known_model_is_named_and_not_shown(
    pegboard: CommandLine,
) -> None:
    options = {"baseURL": "http://127.0.0.1:9", "apiKey": "sk-planted-secret"}
    pegboard.configure(provider={"house": {"options": options}})

    done = await pegboard("run", "hi")

    assert "keys: house (" in done.err
    assert "sk-planted-secret" not in done.err
