"""`pegboard run` beside plugins that misbehave: it ends with its code, and says who it was."""

import asyncio
import signal

import pytest

from model_server import ModelServer, by_step, call, say
from pegboard_plugins.cli.turn import DEAF_LIMIT_S
from plugins.cli.commands import CommandLine, finished

SIGTERM_LIMIT_S = 5.0
HOLDS = """
import time
from pathlib import Path
from pegboard import hookimpl

@hookimpl
async def {hook}():
    Path({begun!r}).touch()
    time.sleep(600)
"""
ECHO = call("bash", {"command": "echo hi", "description": "Say"})


def install(pegboard: CommandLine, name: str, source: str) -> None:
    """Make a plugin of the user's."""
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(source)


def test_a_signal_is_heeded_in_time_though_the_loop_is_held() -> None:
    assert DEAF_LIMIT_S < SIGTERM_LIMIT_S


@pytest.mark.parametrize("hook", ["event", "chat_params"])
async def test_a_signal_ends_a_run_whose_plugin_holds_the_loop(
    pegboard: CommandLine, hook: str
) -> None:
    begun = pegboard.home / "begun"
    install(pegboard, "naughty", HOLDS.format(hook=hook, begun=str(begun)))
    async with ModelServer(by_step(say("never"))) as server:
        pegboard.use_model(server.url, title="off")
        process = await pegboard.start("run", "hi")
        while not begun.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        done = await finished(process)

    codes = (130, -signal.SIGTERM) if hook == "event" else (130,)  # the first is before the turn
    assert done.code in codes


async def test_the_time_limit_ends_a_run_whose_plugin_holds_the_loop(pegboard: CommandLine) -> None:
    begun = pegboard.home / "begun"
    install(pegboard, "naughty", HOLDS.format(hook="chat_params", begun=str(begun)))
    async with ModelServer(by_step(say("never"))) as server:
        pegboard.use_model(server.url, title="off")
        done = await pegboard("run", "--time-limit", "0.5", "hi")

    assert done.code == 7
    assert "a plugin holds up everything" in done.err


async def test_a_policy_that_holds_the_loop_beyond_its_limit_denies(pegboard: CommandLine) -> None:
    source = """
import time
from pegboard import hookimpl

@hookimpl
async def permission_ask():
    time.sleep(0.5)
"""
    install(pegboard, "naughty", source)
    async with ModelServer(by_step(ECHO, say("done"))) as server:
        limits = {"naughty": {"timeout_s": 0.1}}
        pegboard.use_model(server.url, title="off", permission={"*": "allow"}, plugins=limits)
        done = await pegboard("run", "hi")

    assert done.code == 5
    assert "plugin naughty: hook permission_ask held up everything, 0." in done.err
    assert "s in all; its limit is 0.1 s\n" in done.err
