"""A choice on a terminal, where an argument was left out."""

import asyncio
import json
import os
import signal

import pytest

from model_server import ModelServer, by_step, say
from pegboard.cli import Exit
from pegboard_plugins.cli.picking import interruptible
from plugins.cli.commands import CommandLine


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
