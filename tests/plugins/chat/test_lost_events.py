"""A chat whose server's events were lost asks anew for all that no message tells."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pegboard_client import AsyncClient

from pegboard.schema.session import PermissionRequest
from plugins.chat.conftest import Place
from plugins.chat.screen import ChatTerminal, chat, scripts
from plugins.cli.commands import CommandLine
from support.wire.cable import Cable, cable

PASSWORD = "a-password-of-the-test"
SLOW = {"tool": "bash", "input": {"command": "sleep 60", "description": "sleep"}}
ASKED = {"tool": "bash", "input": {"command": "touch made.txt", "description": "touch"}}
MOST = 9
"""Events of a megabyte: more than a server keeps."""


@asynccontextmanager
async def far(
    pegboard: CommandLine, *arguments: str, ready: str = "script.json"
) -> AsyncIterator[tuple[ChatTerminal, Cable, AsyncClient]]:
    """A chat at the end of a cable, and a client beside its server."""
    pegboard.env["PEGBOARD_SERVER_PASSWORD"] = PASSWORD
    place = Place(pegboard, attached=True)
    _, url = await place.arguments()
    try:
        async with (
            cable(url) as line,
            AsyncClient(url, password=PASSWORD, directory=pegboard.project) as client,
            chat(pegboard, *arguments, "--attach", line.url, columns=100, ready=ready) as terminal,
        ):
            yield terminal, line, client
    finally:
        await place.close()


async def lose(client: AsyncClient) -> None:
    """Have the server forget what it has told."""
    link = client._link._opened()
    for _ in range(MOST):
        text = {"text": "x" * (1 << 20)}
        request = link.build_request("POST", "/tui/append-prompt", json=text)
        (await client._link._sent(request)).raise_for_status()


async def test_a_turn_that_ended_unheard_is_over_and_the_queue_goes_on(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard, slow=[{"calls": [SLOW]}, {"text": "End."}])

    async with far(pegboard) as (terminal, line, client):
        await terminal.say("slow")
        await terminal.see_now("● bash sleep 60")
        terminal.press("and then")
        await terminal.see_now("and then")
        terminal.press("alt-enter")
        await terminal.see_now("after this turn: and then")
        await line.unplug()
        await terminal.see_now("No connection to the server, trying again")
        [session] = await client.sessions.list()
        await client.sessions.abort(session.id)
        await lose(client)
        await line.plug()
        await terminal.see("You said: and then")
        await terminal.gone("● bash sleep 60  ")
        await terminal.gone("No connection to the server")
        assert "after this turn: " not in "\n".join(terminal.shown)


async def test_a_request_that_was_answered_unheard_is_asked_no_more(pegboard: CommandLine) -> None:
    steps = [{"calls": [ASKED]}, {"text": "It was touched."}]
    scripts(pegboard, touch=steps, settings={"permission": {"bash": "ask"}})

    async with far(pegboard) as (terminal, line, client):
        await terminal.say("touch")
        await terminal.see_now("Yes, once")
        await line.unplug()
        [request] = await client.permissions.list()
        assert isinstance(request, PermissionRequest)
        await client.permissions.reply(request.id, "once")
        async with asyncio.timeout(30):
            while await client.sessions.status():  # noqa: ASYNC110 - the events are lost on purpose
                await asyncio.sleep(0.05)
        await lose(client)
        await line.plug()
        await terminal.see("It was touched.")
        await terminal.gone("Yes, once")
        await terminal.say("hello")
        await terminal.see("You said: hello")


async def test_an_error_whose_event_comes_after_the_answer_stands_once(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard)

    async with far(pegboard, "-m", "scripted/none", ready="scripted/none") as (terminal, line, _):
        line.events_flow.clear()
        await terminal.say("hello")
        await terminal.see("not found")
        line.events_flow.set()
        await terminal.see("❯ hello")
        await terminal.quiet()
        assert terminal.everything.count("not found") == 1
        await terminal.say("again")
        await terminal.until(lambda: terminal.everything.count("not found") == 2)
