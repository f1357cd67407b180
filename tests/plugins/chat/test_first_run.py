"""The first screen ends in a chat with a model, and the choice is remembered."""

from collections.abc import AsyncIterator

import pytest

from model_server import ModelServer, by_step, say
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import AnyTerminal
from plugins.cli.commands import CommandLine

MENU = "a letter or Enter"
LIMIT = {"context": 100_000, "output": 4_000}


@pytest.fixture
async def server(pegboard: CommandLine) -> AsyncIterator[ModelServer]:
    """A provider that needs a key, without a model that is chosen."""
    async with ModelServer(by_step(say("One."), say("Two."))) as running:
        provider = {
            "options": {"baseURL": running.url},
            "env": ["FAKE_API_KEY"],
            "models": {name: {"limit": LIMIT} for name in ("say-2", "say-10", "say-3")},
        }
        pegboard.configure(provider={"fake": provider}, enabled_providers=["fake"])
        yield running


async def log_in(terminal: AnyTerminal) -> None:
    """Choose the provider, and type its key."""
    await terminal.see_dialog(MENU)
    terminal.press("l")
    await terminal.see_now("❯ fake")
    terminal.press("enter")
    await terminal.see("API key of fake")
    terminal.press("a-key", "enter")


async def test_after_a_login_a_model_is_chosen_and_the_chat_begins(
    pegboard: CommandLine, server: ModelServer
) -> None:
    async with chat(pegboard, ready=MENU) as terminal:
        await log_in(terminal)
        await terminal.see_now("❯ fake/say-10")
        terminal.press("enter")
        await terminal.see("Model: fake/say-10 (saved)")
        await terminal.see_now("❯ ask ✓  ask before edits and commands")
        terminal.press("down", "enter")
        await terminal.see("Mode: accept-edits (saved)")
        await terminal.gone(MENU)
        await terminal.say("hello")
        await terminal.see("One.")
        assert terminal.everything.count("Welcome to Pegboard") == 1
        assert terminal.everything.count("mode ask (Shift+Tab) · ? keys · / commands") == 1
    async with chat(pegboard, ready="fake/say-10") as terminal:
        await terminal.see("mode accept-edits (Shift+Tab) · ? keys · / commands")
        assert "Welcome" not in terminal.everything
        assert "· accept-edits ·" in terminal.status

    assert server.requests


async def test_with_a_key_the_first_screen_offers_a_model_first(
    pegboard: CommandLine, server: ModelServer
) -> None:
    async with chat(pegboard, ready=MENU, FAKE_API_KEY="k") as terminal:
        await terminal.see("API keys: fake.")
        await terminal.see_dialog("❯ m  Choose a model")
        terminal.press("enter")
        await terminal.see_now("❯ fake/say-10")
        terminal.press("escape")
        await terminal.see_dialog("❯ m  Choose a model")
        terminal.press("escape")
        await terminal.gone(MENU)

    assert server.requests == []


async def test_a_model_that_no_provider_serves_is_refused_at_once(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard, columns=120) as terminal:
        before = terminal.status
        await terminal.say("/model nope/nothing")
        await terminal.see("model not found: nope/nothing")
        await terminal.say("/model openai/gpt-4o-min")
        await terminal.see("openai/gpt-4o-min is in no list of models")
        await terminal.see("Model: openai/gpt-4o-min (this chat only)")

    assert "script.json" in before
