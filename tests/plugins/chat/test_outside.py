"""What leaves the chat for a moment runs nothing of the project."""

from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine
from plugins.cli.test_own_programs import importing, marking, ran
from worktrees import git


async def test_commands_pages_and_editors_run_nothing_of_the_project(
    pegboard: CommandLine,
) -> None:
    git(pegboard.project, "init", "-q")
    inside = pegboard.project / "inside"
    marking(pegboard.project / "bin", "less", "ours", "wl-paste", "xclip", "git")
    importing(pegboard.project, "click", "pegboard")
    inside.mkdir()
    importing(inside, "click", "pegboard")
    pegboard.env |= {
        "PATH": f"{pegboard.project}/bin:/usr/bin:/bin",
        "EDITOR": "ours",
        "VISUAL": "",
        "PAGER": "",
    }
    scripts(pegboard, hello={"text": "Hello.", "calls": []})
    pegboard.project = inside

    async with chat(pegboard, rows=30) as terminal:
        await terminal.say("/doctor")
        await terminal.see("nothing is wrong with them")
        terminal.press("c-g")
        await terminal.back()
        await terminal.say("hello")
        await terminal.see("Hello.")
        terminal.press("c-v")
        await terminal.see("there is no picture in the clipboard")
        terminal.press("c-d", "c-d")
        await terminal.end()

    assert ran(pegboard) == []
