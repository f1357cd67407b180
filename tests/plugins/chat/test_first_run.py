"""The first screen ends in a chat with a model, and the choice is remembered."""

import json
from collections.abc import AsyncIterator

import pytest

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import WAITING, AnyTerminal
from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, say
from support.wire.web_server import page, serving

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


async def log_in(terminal: AnyTerminal, provider: str = "fake") -> None:
    """Choose the provider, and type its key."""
    await terminal.see_dialog(MENU)
    terminal.press("l")
    await terminal.see_now(f"❯ {provider}")
    terminal.press("enter")
    await terminal.see(f"API key of {provider}")
    terminal.press("a-key", "enter")


async def test_after_a_login_a_model_is_chosen_and_the_chat_begins(
    pegboard: CommandLine, server: ModelServer
) -> None:
    async with chat(pegboard, ready=MENU) as terminal:
        await log_in(terminal)
        await terminal.see_now("❯ fake/say-10")
        assert "also saves" not in "\n".join(terminal.shown)  # Enter does, too
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


async def test_four_keys_besides_the_api_key_lead_to_the_first_prompt(
    pegboard: CommandLine, server: ModelServer
) -> None:
    async with chat(pegboard, ready=MENU) as terminal:
        await terminal.see_dialog(MENU)
        terminal.press("enter")
        await terminal.see_now("❯ fake")
        terminal.press("enter")
        await terminal.see("API key of fake")
        terminal.press("a-key", "enter")
        await terminal.see_now("❯ fake/say-10")
        terminal.press("enter")
        await terminal.see_now("❯ ask ✓")
        terminal.press("enter")
        await terminal.see("Mode: ask (saved)")
        await terminal.say("hello")
        await terminal.see("One.")

    assert server.requests


async def test_each_provider_is_offered_once_and_the_best_known_first(
    pegboard: CommandLine,
) -> None:
    async with chat(pegboard, ready=MENU) as terminal:
        await terminal.see_dialog(MENU)
        terminal.press("l")
        await terminal.see_now("❯ openai")
        rows = [row.split()[0] for row in terminal.shown if row.endswith("_API_KEY")]
        assert rows[:2] == ["❯", "anthropic"]
        assert "google" not in rows


async def test_after_a_login_the_list_has_the_models_of_a_server_on_this_machine(
    pegboard: CommandLine,
) -> None:
    models = json.dumps({"object": "list", "data": [{"id": "own-coder", "object": "model"}]})
    async with serving({"/v1/models": page(models.encode(), "application/json")}) as web:
        pegboard.configure(enabled_providers=["openai"])
        async with chat(pegboard, ready=MENU, OPENAI_BASE_URL=web.url("/v1")) as terminal:
            await log_in(terminal, "openai")
            await terminal.see_now("❯ openai/own-coder")
            assert "gpt" not in "\n".join(terminal.shown)
            terminal.press("enter")
            await terminal.see("Model: openai/own-coder (saved)")


@pytest.mark.parametrize("lists", [True, False])
async def test_the_list_has_the_models_of_the_server_that_is_asked_and_no_others(
    pegboard: CommandLine, *, lists: bool
) -> None:
    models = json.dumps({"object": "list", "data": [{"id": "own-coder", "object": "model"}]})
    answers = {"/v1/models": page(models.encode(), "application/json")} if lists else {}
    pegboard.configure(enabled_providers=["openai"])
    async with serving(answers) as web:
        env = {"OPENAI_BASE_URL": web.url("/v1"), "OPENAI_API_KEY": "k"}
        async with chat(pegboard, ready=MENU, **env) as terminal:
            await terminal.see("API keys: openai.")
            await terminal.see_dialog("❯ m  Choose a model")
            terminal.press("m")
            if lists:
                await terminal.see_now("❯ openai/own-coder")
                assert "gpt" not in "\n".join(terminal.shown)
            else:
                await terminal.see("openai lists no models (status 404)")
                await terminal.see("/model openai/NAME chooses one")
                await terminal.see_now("no match")


REFUSED = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "it wants a key; add it below, or set OPENAI_API_KEY (status 401)."),
        ("k", "it refuses this key; add another below, or set OPENAI_API_KEY (status 401)."),
    ],
)
async def test_the_first_screen_says_that_the_named_server_refuses(
    pegboard: CommandLine, key: str, words: str
) -> None:
    pegboard.configure(enabled_providers=["openai"])
    async with serving({"/v1/models": REFUSED}) as web:
        env = {"OPENAI_BASE_URL": web.url("/v1"), **({"OPENAI_API_KEY": key} if key else {})}
        async with chat(pegboard, ready=MENU, columns=160, **env) as terminal:
            await terminal.see(f"OPENAI_BASE_URL names {web.url('/v1')}: {words}")


async def test_the_first_screen_says_that_the_named_server_does_not_answer(
    pegboard: CommandLine,
) -> None:
    async with serving({}) as web:
        url = web.url("/v1")
    async with chat(pegboard, ready=MENU, columns=160, OPENAI_BASE_URL=url) as terminal:
        words = "nothing listens there; start the server, or correct OPENAI_BASE_URL."
        await terminal.see(f"OPENAI_BASE_URL names {url}: {words}")


async def test_a_list_that_is_left_gives_the_keys_back_to_the_first_screen(
    pegboard: CommandLine, server: ModelServer
) -> None:
    async with chat(pegboard, ready=MENU) as terminal:
        await terminal.see_dialog(MENU)
        terminal.press("l")
        await terminal.see_now("❯ fake")
        terminal.press("escape")
        await terminal.see_now(MENU)
        assert WAITING not in terminal.dialog
        terminal.press("n")
        await terminal.gone(MENU)

    assert server.requests == []


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


async def test_a_long_list_has_the_whole_window(pegboard: CommandLine) -> None:
    models = {f"say-{number:02}": {"limit": LIMIT} for number in range(50)}
    fake = {"options": {"baseURL": "http://127.0.0.1:9"}, "env": ["KEY"], "models": models}
    pegboard.configure(provider={"fake": fake}, enabled_providers=["fake"])

    async with chat(
        pegboard, "-m", "fake/say-49", KEY="k", ready="fake/say-49", rows=40
    ) as terminal:
        await terminal.say("/model")
        await terminal.see_now("❯ fake/say-49")
        rows = [row.strip("❯ ") for row in terminal.shown]
        assert sum(row.startswith("fake/say-") for row in rows) == 31


async def test_a_part_of_a_name_opens_the_list_of_the_models_that_have_it(
    pegboard: CommandLine, server: ModelServer
) -> None:
    async with chat(pegboard, "-m", "fake/say-2", FAKE_API_KEY="k", ready="fake/say-2") as terminal:
        await terminal.say("/model SAY-1")
        await terminal.see_now("❯ fake/say-10")
        assert "fake/say-3" not in "\n".join(terminal.shown)
        terminal.press("enter")
        await terminal.see("Model: fake/say-10")

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


async def test_an_attached_chat_lists_the_models_that_the_server_s_machine_has_asked_for(
    pegboard: CommandLine,
) -> None:
    models = json.dumps({"object": "list", "data": [{"id": "own-coder", "object": "model"}]})
    async with serving({"/v1/models": page(models.encode(), "application/json")}) as web:
        options = {"baseURL": web.url("/v1"), "apiKey": "k"}
        scripts(pegboard, settings={"provider": {"house": {"options": options}}})
        place = Place(pegboard, attached=True)
        async with chat(pegboard, *await place.arguments(), columns=120) as terminal:
            await terminal.say("/model house/own-coder")
            await terminal.see("on the server's machine, `pegboard models --ask house` brings more")
            asked = await pegboard("models", "--ask", "house")
            assert "house: 1 model" in asked.err
            await terminal.say("/model own-coder")
            await terminal.see_now("❯ house/own-coder")
            terminal.press("enter")
            await terminal.see("Model: house/own-coder (this chat only)")
        await place.close()
