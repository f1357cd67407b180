"""What plugins add to the chat, and what becomes of the chat when they fail at it."""

import asyncio

import pytest

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import AnyTerminal
from plugins.cli.commands import CommandLine

PLUGIN = """
import time
from pegboard import hookimpl
from pegboard.display import Block, Span
from pegboard_plugins.chat import (
    ChatKey, Completion, FooterWidget, SlashCommand, StatusItem, Theme,
)


async def greet(context, argument):
    chosen = await context.choose("Whom?", ["Ada", "Grace"])
    context.say(f"hello {chosen} {argument} in {context.state.directory.name}")


async def key(context):
    context.say("the key was pressed")


async def form(context, _):
    sure = await context.confirm("Sure?")
    name = await context.input("Name?")
    month = await context.choose("Month?", [f"month {number}" for number in range(1, 13)])
    context.say(f"sure {sure}, name {name}, {month}")


@hookimpl
def register_slash():
    return (
        SlashCommand(name="greet", help="says hello", action=greet),
        SlashCommand(name="form", help="asks", action=form),
    )


@hookimpl
def register_keys():
    return (
        ChatKey(key="c-y", name="greeting", help="greets", action=key),
        ChatKey(key="c-o", name="taken", help="is the chat's", action=key),
    )


@hookimpl
def status_items(state):
    return (StatusItem(id="mine", text=f"status of {state.agent}", priority=99),)


@hookimpl
def footer_widget(state):
    return (FooterWidget(id="mine", lines=((Span("a widget", "dim"),),)),)


@hookimpl
def register_themes():
    return (Theme(name="mine", palette={"rule": "red"}),)


@hookimpl
def complete(kind, text, directory):
    return (Completion(text="issue-12", note="an issue"),)


@hookimpl
def render_tool(part, width):
    if part.tool == "bash":
        return Block(title="drawn by a plugin", lines=((Span("its line"),),))
"""
BROKEN = """
import asyncio
import time
from pegboard import hookimpl
from pegboard_plugins.chat import ChatKey, SlashCommand


ASYNC fails(*_):
    ACT


def answer(*_):
    HOW


@hookimpl
def register_slash():
    return (SlashCommand(name="broken", help="fails", action=fails),)


@hookimpl
def register_keys():
    return (ChatKey(key="c-y", name="broken", help="fails", action=fails),)


@hookimpl
def status_items(state):
    return answer()


@hookimpl
def footer_widget(state):
    return answer()


@hookimpl
def register_themes():
    return answer()


@hookimpl
def complete(kind, text, directory):
    return answer()


@hookimpl
def render_tool(part, width):
    return answer()
"""
CALL = {"tool": "bash", "input": {"command": "echo out", "description": "say"}}


def install(pegboard: CommandLine, source: str) -> None:
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(source)


@pytest.mark.fires(
    "register_slash",
    "register_keys",
    "register_themes",
    "status_items",
    "footer_widget",
    "complete",
)
async def test_what_a_plugin_adds_is_there(pegboard: CommandLine) -> None:
    install(pegboard, PLUGIN)
    scripts(pegboard, go=[{"calls": [CALL]}, {"text": "End."}])

    async with chat(pegboard, columns=120) as terminal:
        await terminal.see_now("status of build")
        await terminal.see_now("a widget")
        await terminal.see("the key c-o is the chat's own")
        terminal.press("c-y")
        await terminal.see("the key was pressed")
        await terminal.say("/greet you")
        await terminal.see_now("Whom?")
        terminal.press("down", "enter")
        await terminal.see("hello Grace you in project")
        terminal.press("see @iss")
        await terminal.see_now("issue-12  an issue")
        terminal.press("tab")
        await terminal.see_now("see @issue-12")
        terminal.press("c-c")
        await terminal.say("/theme mine")
        await terminal.say("go")
        await terminal.see("End.")

    assert "● bash drawn by a plugin" in terminal.above
    assert "│ its line" in terminal.above


FAILURES = {
    "raises": ("raise ValueError('no luck')", "raise ValueError('no luck')", "raised ValueError"),
    "hangs": ("time.sleep(20)", "time.sleep(3)", "held everything up for"),
    "never ends": ("time.sleep(20)", "await asyncio.sleep(999)", "has not ended in 10 s"),
    "exits": ("raise SystemExit(3)", "raise SystemExit(3)", "raised SystemExit: 3"),
    "nonsense": ("return 7", "return 7", "raised TypeError"),
    "wrong types": ("return (object(),)", "raise SystemExit", "raised SystemExit"),
}


def broken(how: str) -> str:
    """The plugin whose hooks and actions all fail in this way."""
    answer, act, _ = FAILURES[how]
    kind = "def" if how == "nonsense" else "async def"
    return BROKEN.replace("HOW", answer).replace("ASYNC", kind).replace("ACT", act)


async def failing(terminal: AnyTerminal, how: str) -> None:
    """What the plugin adds is tried, and it is named each time; then a turn is as always."""
    said = FAILURES[how][2]
    await terminal.see("plugin mine: hook")
    terminal.press("c-y")
    await terminal.see(f"plugin mine: the key broken {said}")
    await terminal.say("/broken")
    await terminal.see(f"plugin mine: /broken {said}")
    terminal.press("@a")
    await asyncio.sleep(0.2)
    terminal.press("c-c")
    await terminal.until(lambda: terminal.editor == "❯")
    await terminal.say("go")
    await terminal.see("End.")


async def test_a_plugin_asks_here(pegboard: CommandLine, place: Place) -> None:
    install(pegboard, PLUGIN)
    scripts(pegboard)

    async with chat(pegboard, *await place.arguments(), columns=120) as terminal:
        await terminal.see("the key c-o is the chat's own")
        await terminal.say("/form")
        await terminal.see_now("Sure?")
        terminal.press("down", "enter")
        await terminal.see_now("Name?")
        await terminal.say("Ada")
        await terminal.see_now("Month?")
        terminal.press("11", "enter")
        await terminal.see("sure True, name Ada, month 11")
        await terminal.say("/form")
        await terminal.see_now("Sure?")
        terminal.press("escape")
        await terminal.see_now("Name?")
        terminal.press("escape")
        await terminal.see_now("Month?")
        terminal.press("escape")
        await terminal.see("sure False, name None, None")


async def test_what_a_plugin_asks_is_answered_elsewhere(pegboard: CommandLine) -> None:
    install(pegboard, PLUGIN)
    scripts(pegboard)
    place = Place(pegboard, attached=True)
    arguments = await place.arguments()
    try:
        async with chat(pegboard, *arguments, columns=120) as first:
            await first.say("hello")
            await first.see("You said: hello")
            async with chat(pegboard, *arguments, "-c", columns=120) as second:
                await second.see("You said: hello")
                await first.say("/greet you")
                await first.see_now("Whom?")
                await second.see_dialog("2    Grace")
                second.press("2")
                await first.see("hello Grace you in project")
                await first.gone("Whom?")
                await second.gone("Whom?")
                await first.say("/greet me")
                await second.see_now("2    Grace")
                assert first.process is not None
                first.process.kill()
                await second.gone("Whom?")
    finally:
        await place.close()


@pytest.mark.parametrize(
    "how",
    [pytest.param(how, marks=[pytest.mark.long] * (how == "never ends")) for how in FAILURES],
)
async def test_a_plugin_that_fails_is_named_and_the_chat_goes_on(
    pegboard: CommandLine, how: str
) -> None:
    install(pegboard, broken(how))
    scripts(pegboard, go=[{"calls": [CALL]}, {"text": "End."}])

    async with chat(pegboard, columns=120) as terminal:
        await failing(terminal, how)

    assert "● bash echo out" in terminal.above
    assert "│ out" in terminal.above


async def test_the_users_configuration_gives_a_key_another(pegboard: CommandLine) -> None:
    plugins = {"chat": {"options": {"keys": {"output": "c-y"}}}}
    scripts(pegboard, settings={"plugins": plugins})

    async with chat(pegboard) as terminal:
        terminal.press("c-y")
        await terminal.see("no tool call has ended yet")


async def test_keys_can_be_swapped_and_given_back(pegboard: CommandLine) -> None:
    swapped = {"plugins": {"chat": {"options": {"keys": {"output": "?", "help": "c-o"}}}}}
    scripts(pegboard, settings=swapped)

    async with chat(pegboard, rows=40, columns=120) as terminal:
        terminal.press("?")
        await terminal.see("no tool call has ended yet")
        terminal.press("c-o")
        await terminal.see("search the history")
        scripts(pegboard)
        await terminal.say("/reload")
        await terminal.see("settings reloaded")
        terminal.press("c-o")
        await terminal.until(lambda: terminal.everything.count("no tool call has ended yet") == 2)


async def test_a_setting_that_is_no_key_is_named_and_the_chat_goes_on(
    pegboard: CommandLine,
) -> None:
    keys = {"output": "no such key", "redraw": "c-o", "transcript": "c-y"}
    scripts(pegboard, settings={"plugins": {"chat": {"options": {"keys": keys}}}})

    async with chat(pegboard) as terminal:
        await terminal.see("! plugins.chat.options.keys: 'no such key' is not a key")
        await terminal.say("hello")
        await terminal.see("You said: hello")
