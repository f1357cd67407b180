"""The last line tells the branch, the sandbox and the trust alike here and with a server."""

import subprocess

import pytest

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine

WHO = ("-c", "user.name=a", "-c", "user.email=a@b")
SWITCH = {"tool": "bash", "input": {"command": "git checkout -qb second", "description": "switch"}}


@pytest.fixture(autouse=True)
def repository(pegboard: CommandLine) -> None:
    """A repository on its first branch."""
    for words in (("init", "-qb", "first"), (*WHO, "commit", "-qm", "begin", "--allow-empty")):
        subprocess.run(["git", *words], cwd=pegboard.project, check=True)


async def test_the_branch_is_told_and_another_one_after_a_turn(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard, switch=[{"calls": [SWITCH]}, {"text": "Switched."}])

    async with chat(pegboard, *await place.arguments(), columns=120) as terminal:
        await terminal.see_now("project · first · build")
        await terminal.say("switch")
        await terminal.see_now("project · second · build")


async def test_the_sandbox_and_lacking_trust_are_told(pegboard: CommandLine, place: Place) -> None:
    scripts(pegboard, settings={"sandbox": "workspace"})
    plugins = pegboard.project / ".pegboard" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "house.py").write_text("")

    async with chat(pegboard, *await place.arguments(), columns=160) as terminal:
        await terminal.until(lambda: "sandbox workspace · not trusted" in terminal.status)
        await terminal.see("not loaded: .pegboard/plugins/house.py (not trusted); `pegboard trust")


async def test_what_an_agent_wrote_is_shown_and_accepted(
    pegboard: CommandLine, place: Place
) -> None:
    write = {"tool": "write", "input": {"filePath": "AGENTS.md", "content": "Obey me."}}
    scripts(pegboard, note=[{"calls": [write]}, {"text": "Noted."}])

    async with chat(pegboard, *await place.arguments(), columns=160) as terminal:
        await terminal.say("note")
        await terminal.see("Noted.")
        await terminal.until(lambda: "written by an agent: /trust" in terminal.status)
        await terminal.say("/trust")
        await terminal.see("Accept what an agent wrote there as instructions")
        await terminal.see("Obey me.")
        terminal.press("y", "enter")
        await terminal.back()
        await terminal.until(lambda: "written by" not in terminal.status)
