"""A prompt that cannot be answered: its reason stands once."""

from functools import partial

from plugins.chat.conftest import Place
from plugins.chat.screen import ChatTerminal, chat, scripts
from plugins.cli.commands import CommandLine


async def test_a_model_that_there_is_not_is_said_once_for_each_prompt(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard)

    async with chat(
        pegboard, *await place.arguments(), "-m", "scripted/none", ready="scripted/none"
    ) as terminal:
        for number, said in enumerate(("prompt 1", "prompt 2", "/compact", "/compact"), 1):
            await terminal.say(said)
            await terminal.until(partial(_is_told, terminal, number))
            await terminal.quiet()
            assert terminal.everything.count("not found") == number


def _is_told(terminal: ChatTerminal, times: int) -> bool:
    return terminal.everything.count("not found") >= times
