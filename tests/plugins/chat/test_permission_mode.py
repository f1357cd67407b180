"""The mode of a chat is in its last line, and counts from the next request on."""

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine

WRITE = [{"calls": [{"tool": "write", "input": {"filePath": "new.txt", "content": "x\n"}}]}]
FINISH = [{"calls": [{"tool": "plan_exit", "input": {}}]}, {"text": "Planned."}]


def prepared(pegboard: CommandLine, **settings: object) -> None:
    said = {"permission_mode": "ask", **settings}
    scripts(pegboard, write=[*WRITE, {"text": "Written."}], finish=FINISH, settings=said)


async def test_the_mode_decides_what_is_asked_from_the_next_request_on(
    pegboard: CommandLine, place: Place
) -> None:
    prepared(pegboard)
    file = pegboard.project / "new.txt"
    async with chat(pegboard, *await place.arguments(), columns=120) as terminal:
        await terminal.until(lambda: "· ask ·" in terminal.status)
        await terminal.say("write it")
        await terminal.see_dialog("mode ask: ask before edits")
        assert not file.exists()
        terminal.press("y")
        await terminal.see("Written.")
        file.unlink()
        terminal.press("s-tab")
        await terminal.until(lambda: "· accept-edits ·" in terminal.status)
        await terminal.say("write it again")
        await terminal.until(file.exists)
        terminal.press("s-tab")
        await terminal.until(lambda: "· plan ·" in terminal.status)
        terminal.press("s-tab")
        await terminal.until(lambda: "· build · everything ·" in terminal.status)
        await terminal.say("/mode nope")
        await terminal.see("no mode is called nope; the modes are ask, accept-edits, plan")


async def test_a_mode_that_allows_what_waits_answers_it(
    pegboard: CommandLine, place: Place
) -> None:
    prepared(pegboard)
    async with chat(pegboard, *await place.arguments(), columns=120) as terminal:
        await terminal.say("write it")
        await terminal.see_dialog("mode ask: ask before edits")
        terminal.press("s-tab")
        await terminal.see("Written.")

    assert (pegboard.project / "new.txt").exists()


async def test_a_mode_answers_only_what_it_allows(pegboard: CommandLine, place: Place) -> None:
    command = {"command": "echo x > new.txt", "description": "Write"}
    steps = [{"calls": [{"tool": "bash", "input": command}]}, {"text": "Written."}]
    scripts(pegboard, write=steps, settings={"permission_mode": "ask"})
    async with chat(pegboard, *await place.arguments(), columns=120) as terminal:
        await terminal.say("write it")
        await terminal.see_dialog("Allow bash?")
        terminal.press("s-tab")
        await terminal.until(lambda: "· accept-edits ·" in terminal.status)
        await terminal.quiet()
        assert "Allow bash?" in terminal.dialog
        assert not (pegboard.project / "new.txt").exists()
        terminal.press("s-tab", "s-tab")
        await terminal.see("Written.")

    assert (pegboard.project / "new.txt").exists()


async def test_no_mode_answers_what_a_rule_asks(pegboard: CommandLine, place: Place) -> None:
    prepared(pegboard, permission={"edit": "ask"})
    async with chat(pegboard, *await place.arguments(), columns=120) as terminal:
        await terminal.say("write it")
        await terminal.see_dialog("Allow edit?")
        terminal.press("s-tab", "s-tab", "s-tab")
        await terminal.until(lambda: "· everything ·" in terminal.status)
        await terminal.quiet()
        assert "Allow edit?" in terminal.dialog
        assert not (pegboard.project / "new.txt").exists()


async def test_a_plan_that_is_approved_ends_plan_mode(pegboard: CommandLine, place: Place) -> None:
    prepared(pegboard)
    async with chat(pegboard, *await place.arguments(), "--mode", "plan", columns=120) as terminal:
        await terminal.until(lambda: "· plan ·" in terminal.status)
        await terminal.say("finish it")
        await terminal.see_dialog("Question")
        terminal.press("1")
        await terminal.until(lambda: "· build · ask ·" in terminal.status)


async def test_a_dialog_that_stays_names_the_mode_that_asks_by_now(
    pegboard: CommandLine, place: Place
) -> None:
    steps = [{"calls": [{"tool": "bash", "input": {"command": "touch x"}}]}, {"text": "Touched."}]
    scripts(pegboard, touch=steps, settings={"permission_mode": "ask"})
    async with chat(pegboard, *await place.arguments(), columns=120) as terminal:
        await terminal.say("touch")
        await terminal.see_dialog("mode ask: ask before edits and commands")
        terminal.press("s-tab")
        await terminal.see_dialog("mode accept-edits: edit freely, ask before commands")
        terminal.press("y")
        await terminal.see("Touched.")


async def test_a_session_keeps_its_mode_and_two_chats_show_the_same(
    pegboard: CommandLine,
) -> None:
    prepared(pegboard)
    place = Place(pegboard, attached=True)
    arguments = await place.arguments()
    async with chat(pegboard, *arguments, "--mode", "everything", columns=120) as first:
        await first.say("hello")
        await first.see("You said: hello")
        async with chat(pegboard, *arguments, "-c", columns=120) as second:
            await second.until(lambda: "· everything ·" in second.status)
            second.press("s-tab")
            await second.until(lambda: "· ask ·" in second.status)
            await first.until(lambda: "· ask ·" in first.status)
    await place.close()


async def test_an_attached_chat_begins_in_the_mode_of_the_server_or_in_the_one_that_is_named(
    pegboard: CommandLine,
) -> None:
    prepared(pegboard, permission_mode="accept-edits")
    place = Place(pegboard, attached=True)
    arguments = await place.arguments()
    scripts(pegboard, settings={"permission_mode": "everything"})
    async with chat(pegboard, *arguments, columns=120) as terminal:
        await terminal.until(lambda: "· accept-edits ·" in terminal.status)
        await terminal.see("mode accept-edits (Shift+Tab)")
    async with chat(pegboard, *arguments, "--mode", "ask", columns=120) as terminal:
        await terminal.until(lambda: "· ask ·" in terminal.status)
    await place.close()


async def test_a_chat_without_a_chosen_mode_asks(pegboard: CommandLine) -> None:
    prepared(pegboard, permission_mode=None)

    async with chat(pegboard, columns=120) as terminal:
        assert "· ask ·" in terminal.status
        await terminal.say("write it")
        await terminal.see_dialog("mode ask")


async def test_a_chat_has_rules_of_its_own(pegboard: CommandLine) -> None:
    line = {"command": "rm -rf kept", "description": "Clean"}
    steps = [*WRITE, {"calls": [{"tool": "bash", "input": line}]}, {"text": "Said: {{result.1}}"}]
    scripts(pegboard, go=steps, settings={"permission_mode": "ask"})
    (pegboard.project / "kept").mkdir()
    words = ("--allow", "edit", "--deny", "Bash(rm *)")
    async with chat(pegboard, *words, columns=120) as terminal:
        await terminal.say("go")
        await terminal.see("Said: ")

    assert (pegboard.project / "new.txt").exists()
    assert (pegboard.project / "kept").exists()


async def test_a_chat_refuses_a_rule_about_nothing(pegboard: CommandLine) -> None:
    prepared(pegboard)
    words = ("--deny", "shel(rm *)")
    async with chat(pegboard, *words, columns=120, ready="the chat cannot start") as terminal:
        seen = terminal.everything

    assert "no tool asks for the permission shel" in seen
