"""What nobody knows of a model is unknown in the chat, in this process and on a server."""

from collections.abc import Iterator

import pytest

from plugins.chat.conftest import Place
from plugins.chat.screen import chat
from plugins.cli.commands import CommandLine
from support.wire.served import model


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with model() as found:
        yield found


async def test_an_unknown_price_and_window_stay_unknown(
    pegboard: CommandLine, place: Place, port: int
) -> None:
    url = f"http://127.0.0.1:{port}/v1"
    provider = {"options": {"baseURL": url, "apiKey": "key"}, "models": {"model": {}}}
    pegboard.configure(model="fake/model", provider={"fake": provider})

    arguments = await place.arguments()
    async with chat(pegboard, *arguments, columns=100, ready="fake/model") as terminal:
        await terminal.say("%say Hello")
        await terminal.see_now(" tokens · cost unknown")
        await terminal.say("/cost")
        await terminal.see("cost unknown · ")
        await terminal.say("/model")
        await terminal.see_now("fake/model ✓  price unknown")
        terminal.press("escape")
        await terminal.gone("type to filter")
    async with chat(pegboard, *arguments, "-c", columns=100, ready="fake/model") as terminal:
        await terminal.see_now(" tokens · cost unknown")
