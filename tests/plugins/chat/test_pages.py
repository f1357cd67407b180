"""Pages and hints: the last call, the transcript, and what stands around the editor."""

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.chat.test_keys import programs
from plugins.cli.commands import CommandLine

READ = {"tool": "read", "input": {"filePath": "a.txt"}}


def prepare(pegboard: CommandLine) -> None:
    scripts(pegboard, look=[{"calls": [READ]}, {"text": "It is **short**."}])
    (pegboard.project / "a.txt").write_text("the only line\n")
    programs(pegboard)


async def test_the_last_call_is_that_of_the_session_that_is_resumed(
    pegboard: CommandLine, place: Place
) -> None:
    prepare(pegboard)
    arguments = await place.arguments()

    async with chat(pegboard, *arguments) as terminal:
        await terminal.say("look")
        await terminal.see("It is short.")
    async with chat(pegboard, *arguments, "-c", "--show", "0") as terminal:
        assert "the only line" not in terminal.everything
        terminal.press("c-o")
        await terminal.see("the only line")
        await terminal.back()


async def test_the_transcript_draws_text_as_the_chat_does(pegboard: CommandLine) -> None:
    prepare(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("look")
        await terminal.see("It is short.")
        terminal.press("c-t")
        await terminal.see("PAGE-BEGINS")
        await terminal.until(
            lambda: "the only line" in terminal.everything.rpartition("PAGE-BEGINS")[2]
        )
        await terminal.back()
        page = terminal.everything.rpartition("PAGE-BEGINS")[2]

    assert "❯ look" in page
    assert "the only line" in page
    assert "It is short." in page
    assert "**" not in page


async def test_all_rows_of_the_editor_begin_in_one_column(pegboard: CommandLine) -> None:
    prepare(pegboard)

    async with chat(pegboard, columns=60) as terminal:
        terminal.press("first", "c-j", "second " + "x" * 60)
        await terminal.until(lambda: "  " + "x" * 9 in terminal.shown)
        assert terminal.editor == "❯ first"
        assert "  second " + "x" * 51 in terminal.shown


async def test_a_shell_command_is_announced_while_it_is_typed(pegboard: CommandLine) -> None:
    prepare(pegboard)

    async with chat(pegboard) as terminal:
        terminal.press("!")
        await terminal.see_now("shell command: Enter runs it unasked")
        terminal.press("c-u")
        await terminal.gone("shell command")


async def test_what_cannot_be_done_says_what_can(pegboard: CommandLine) -> None:
    prepare(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("/exti")
        await terminal.see("did you mean /exit?")
        terminal.press("c-u")
        await terminal.say("/copy")
        await terminal.see("there is no answer to copy yet")


async def test_a_blank_behind_a_completion_is_there_once(pegboard: CommandLine) -> None:
    prepare(pegboard)

    async with chat(pegboard) as terminal:
        terminal.press("see @a.t")
        await terminal.see_now("❯ a.txt")
        terminal.press("tab", " now")
        await terminal.until(lambda: terminal.editor == "❯ see @a.txt now")
        terminal.press("  twice")
        await terminal.until(lambda: terminal.editor == "❯ see @a.txt now  twice")


async def test_a_session_without_a_title_is_listed_as_such(pegboard: CommandLine) -> None:
    scripts(pegboard, hello={"text": "Hello."}, settings={"title": "off"})

    async with chat(pegboard) as terminal:
        await terminal.say("!true")
        await terminal.see("bash true")
        await terminal.say("/sessions")
        await terminal.see_now("❯ (no title)")


async def test_a_key_for_a_server_is_added_on_its_machine(pegboard: CommandLine) -> None:
    prepare(pegboard)
    place = Place(pegboard, attached=True)

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("/login")
        await terminal.see("run `pegboard auth login` on its machine")
    await place.close()


async def test_the_output_of_a_call_that_failed_is_in_the_transcript_once(
    pegboard: CommandLine,
) -> None:
    slow = {"tool": "bash", "input": {"command": 'echo so-""far; sleep 60', "timeout": 500}}
    scripts(pegboard, run=[{"calls": [slow]}, {"text": "It failed."}])
    programs(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("run")
        await terminal.see("It failed.")
        before = terminal.everything.count("so-far")
        terminal.press("c-t")
        await terminal.see("PAGE-BEGINS")
        await terminal.until(lambda: terminal.everything.count("so-far") > before)
        await terminal.back()
        assert terminal.everything.count("so-far") == before + 1
