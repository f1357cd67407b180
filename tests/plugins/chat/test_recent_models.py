"""The list of models: those chosen last come first, and a key saves the choice."""

from pathlib import Path

from pegboard_plugins.chat.recentmodels import REMEMBERED, recent_models, remember_model
from plugins.chat.screen import ChatTerminal, chat
from plugins.cli.commands import CommandLine


def test_the_models_that_were_chosen_last_are_remembered_once_each(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PEGBOARD_STATE_DIR": str(tmp_path)}
    assert recent_models(env) == []

    for name in ("a/one", "a/two", "a/one"):
        remember_model(env, name)
    assert recent_models(env) == ["a/one", "a/two"]

    for number in range(20):
        remember_model(env, f"a/{number}")
    assert recent_models(env) == [f"a/{19 - number}" for number in range(REMEMBERED)]


def models(pegboard: CommandLine, **settings: str) -> None:
    """Configure a provider with models that nobody asks anything."""
    options = {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "key"}
    named = {name: {"limit": {"context": 1000}} for name in ("alpha", "beta", "gamma")}
    provider = {"options": options, "models": named}
    pegboard.configure(provider={"mine": provider}, **settings)


async def listed(terminal: ChatTerminal) -> list[str]:
    """Return the names in the list of models."""
    await terminal.say("/model")
    await terminal.see_now("type to filter")
    await terminal.quiet()
    rows = [row.strip("❯ ").split()[0] for row in terminal.shown if row.strip("❯ ")]
    return [name for name in rows if name.startswith("mine/")]


async def test_the_list_of_models_begins_with_the_one_that_was_chosen_last(
    pegboard: CommandLine,
) -> None:
    models(pegboard, model="mine/alpha")

    async with chat(pegboard, columns=100, ready="mine/alpha") as terminal:
        await terminal.say("/model mine/beta")
        await terminal.see("Model: mine/beta (this chat only)")
    async with chat(pegboard, columns=100, ready="mine/alpha") as terminal:
        assert (await listed(terminal))[0] == "mine/beta"


async def test_a_model_of_this_chat_stays_when_settings_are_loaded_again(
    pegboard: CommandLine,
) -> None:
    models(pegboard, model="mine/alpha")

    async with chat(pegboard, columns=100, ready="mine/alpha") as terminal:
        await terminal.say("/model mine/beta")
        await terminal.see("Model: mine/beta (this chat only)")
        await terminal.say("/reload")
        await terminal.see("settings reloaded")
        assert "mine/beta" in terminal.status
        await terminal.say("/trust")
        await terminal.see("nothing to trust here")
        await terminal.until(lambda: "mine/beta" in terminal.status)


async def test_alt_enter_in_the_list_of_models_saves_the_choice(pegboard: CommandLine) -> None:
    models(pegboard)
    await pegboard("config", "set", "model", "mine/alpha")

    async with chat(pegboard, columns=100, ready="mine/alpha") as terminal:
        await listed(terminal)
        assert "Alt+Enter also saves it" in "\n".join(terminal.shown)
        terminal.press("gamma")
        await terminal.see_now("❯ mine/gamma")
        terminal.press("alt-enter")
        await terminal.see("Model: mine/gamma (saved)")
    async with chat(pegboard, columns=100, ready="mine/gamma"):
        pass


async def test_a_saved_choice_that_another_file_overrides_is_reported(
    pegboard: CommandLine,
) -> None:
    models(pegboard, model="mine/alpha")

    async with chat(pegboard, columns=200, ready="mine/alpha") as terminal:
        await listed(terminal)
        terminal.press("alt-enter")
        await terminal.see("Model: mine/alpha (saved, but ")
        await terminal.see("sets model, too, and counts")
