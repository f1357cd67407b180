"""The slash commands of a project: they wait for trust, and count at the next prompt after it."""

import pytest

from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine

FILES = {
    ".pegboard/commands/deploy.md": "Deploy it now.",
    ".claude/commands/deploy.md": "---\ndescription: Deploy\n---\nDeploy it now.",
    "pegboard.toml": '[command.deploy]\ntemplate = "Deploy it now."\n',
}
WAITS = {
    ".pegboard/commands/deploy.md": "/deploy waits for your trust in .pegboard/commands/deploy.md",
    ".claude/commands/deploy.md": "/deploy waits for your trust in .claude/commands/deploy.md",
    "pegboard.toml": "pegboard.toml waits for your trust and may define it: /trust",
}


def write(pegboard: CommandLine, name: str) -> None:
    path = pegboard.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FILES[name])


@pytest.mark.parametrize("name", FILES)
async def test_a_command_that_waits_for_trust_is_named_and_works_after_it(
    pegboard: CommandLine, place: Place, name: str
) -> None:
    scripts(pegboard, Deploy=[{"text": "Deployed."}])
    write(pegboard, name)

    async with chat(pegboard, *await place.arguments(), columns=160) as terminal:
        await terminal.until(lambda: "not trusted" in terminal.status)
        await terminal.say("/deploy")
        await terminal.see(WAITS[name])
        allowed = await pegboard("trust", "allow", "--yes")  # in another terminal
        assert allowed.code == 0, allowed
        terminal.press("enter")  # the command is in the editor again
        await terminal.see("Deployed.")


async def test_trust_in_the_chat_has_the_command_work_at_once(
    pegboard: CommandLine, place: Place
) -> None:
    scripts(pegboard, Deploy=[{"text": "Deployed."}])
    write(pegboard, "pegboard.toml")

    async with chat(pegboard, *await place.arguments(), columns=160) as terminal:
        await terminal.until(lambda: "not trusted" in terminal.status)
        await terminal.say("/trust")
        await terminal.see("[y/N]")
        terminal.press("y", "enter")
        await terminal.back()
        await terminal.until(lambda: "not trusted" not in terminal.status)
        await terminal.say("/deploy")
        await terminal.see("Deployed.")
