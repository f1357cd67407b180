"""What is shown of a session that was left: as it was said, in the same order."""

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import AnyTerminal
from plugins.cli.commands import CommandLine

LONG = {"tool": "bash", "input": {"command": "sleep 60", "description": "sleep"}}
WRONG = {"fault": {"status": 400, "message": "the request is wrong"}}


def said(terminal: AnyTerminal) -> list[str]:
    """The rows above the footer, without the seconds of calls."""
    rows = [row.split("  ")[0] for row in terminal.above.split("\n") if row.strip()]
    return rows[rows.index("❯ error one") :]


async def test_why_each_prompt_failed_is_seen_where_it_was_when_the_session_is_resumed(
    pegboard: CommandLine, place: Place
) -> None:
    forever = [{"text": "Begun.", "calls": [LONG]}, {"text": "Never."}]
    scripts(pegboard, error=WRONG, forever=forever)
    arguments = await place.arguments()

    async with chat(pegboard, *arguments, rows=40) as terminal:
        for number, prompt in enumerate(("error one", "error two"), 1):
            await terminal.say(prompt)
            await terminal.until(
                lambda: terminal.everything.count("the request is wrong") == number  # noqa: B023 - awaited here
            )
        for number, prompt in enumerate(("forever one", "forever two"), 1):
            await terminal.say(prompt)
            await terminal.see_now("● bash")
            terminal.press("escape")
            await terminal.until(lambda: terminal.everything.count("stopped after") == number)  # noqa: B023 - awaited here
        await terminal.quiet()
        before = said(terminal)
    async with chat(pegboard, *arguments, "-c", rows=40) as terminal:
        await terminal.see("forever two")
        await terminal.until(lambda: "starting …" not in terminal.above)
        await terminal.quiet()
        after = said(terminal)

    assert [row for row in before if "stopped" in row.lower()] == []  # the heads say it
    assert after == before


async def test_the_half_of_an_answer_that_a_dead_program_left_stays_in_its_place(
    pegboard: CommandLine,
) -> None:
    words = " ".join(f"word{number}" for number in range(2000))
    scripts(pegboard, forever={"text": words}, delay_s=0.02)

    async with chat(pegboard) as terminal:
        await terminal.say("forever")
        await terminal.see_now("word40")
        assert terminal.process is not None
        terminal.process.kill()
        await terminal.end()
    async with chat(pegboard, "-c") as terminal:
        await terminal.see("interrupted")
        await terminal.say("hello")
        await terminal.see("You said: hello")
        await terminal.quiet()
        above = terminal.above

    places = [above.index(text) for text in ("word0 ", "interrupted", "❯ hello", "You said")]
    assert places == sorted(places)
    assert above.count("word0 ") == 1


async def test_a_session_that_is_gone_on_with_is_named(pegboard: CommandLine, place: Place) -> None:
    scripts(pegboard)
    arguments = await place.arguments()

    async with chat(pegboard, *arguments) as terminal:
        for number in range(3):
            await terminal.say(f"prompt {number}")
            await terminal.see(f"You said: prompt {number}")
        await terminal.say("/rename The first one")
        await terminal.say("/reload")
        await terminal.see("settings reloaded")
        await terminal.say("/fork")
        await terminal.see("forked: this is now The first one (fork #1)")
        assert "not shown" not in terminal.everything
        await terminal.say("/sessions The first")
        await terminal.see_now("type to filter")
        terminal.press("down", "enter")
        await terminal.see("· The first one\n")
    async with chat(pegboard, *arguments, "-c", "--show", "1") as terminal:
        await terminal.see("· The first one (fork #1) · 4 earlier messages not shown")
        await terminal.see("You said: prompt 2")
