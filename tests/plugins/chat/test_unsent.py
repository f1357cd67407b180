"""What cannot be sent is in the editor again, whatever it is: a prompt, a command, a shell line."""

import pytest

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine

SLOW = {"tool": "bash", "input": {"command": "sleep 60", "description": "sleep"}}


@pytest.mark.parametrize("line", ["a prompt", "!echo shell"])
async def test_what_another_chat_s_turn_keeps_from_being_sent_is_in_the_editor_again(
    pegboard: CommandLine, line: str
) -> None:
    scripts(pegboard, begin=[{"calls": [SLOW]}])

    async with chat(pegboard) as first:
        await first.say("begin")
        await first.see("● bash")
        async with chat(pegboard, "-c") as second:
            await second.say(line)
            await second.see("another chat is using this session")
            await second.until(lambda: second.editor == f"❯ {line}")

        first.press("escape")
        await first.see("stopped")


@pytest.mark.parametrize("line", ["a prompt", "!echo shell", "/init"])
async def test_what_no_model_can_answer_is_in_the_editor_again_and_gives_way_to_a_command(
    pegboard: CommandLine, place: Place, line: str
) -> None:
    scripts(pegboard)

    arguments = (*await place.arguments(), "-m", "scripted/none")
    async with chat(pegboard, *arguments, ready="scripted/none") as terminal:
        await terminal.say(line)
        await terminal.see("model not found: scripted/none")
        await terminal.until(lambda: terminal.editor == f"❯ {line}")
        terminal.press("/model scripted/demo", "enter")
        await terminal.see("· scripted/demo")
        await terminal.until(lambda: terminal.editor == "❯")


async def test_a_prompt_is_in_the_editor_again_where_no_model_is_chosen(
    pegboard: CommandLine, place: Place
) -> None:
    arguments = await place.arguments()
    ready = "no model" if arguments else "Get started"  # a server is not set up by its chats
    async with chat(pegboard, *arguments, ready=ready) as terminal:
        await terminal.say("a prompt")
        await terminal.see("none is chosen")
        await terminal.until(lambda: terminal.editor == "❯ a prompt")


async def test_a_prompt_for_an_agent_that_is_not_there_is_in_the_editor_again(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard)

    arguments = (*await place.arguments(), "--agent", "nobody")
    async with chat(pegboard, *arguments, ready="nobody") as terminal:
        await terminal.say("a prompt")
        await terminal.see("agent not found: nobody")
        await terminal.until(lambda: terminal.editor == "❯ a prompt")


async def test_a_mentioned_file_that_is_not_there_is_named(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("look at @nofile.py please")
        await terminal.see("You said: look at @nofile.py please")

    assert "! @nofile.py is sent as text: there is no such file" in terminal.everything
