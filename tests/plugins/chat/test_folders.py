"""A session of another folder in the chat."""

from dataclasses import replace

from plugins.chat.screen import chat
from plugins.cli.commands import CommandLine, quick_model


async def test_a_session_of_another_folder_is_refused(
    pegboard: CommandLine,
) -> None:
    done = await pegboard("run", "--format", "json", "-m", quick_model(pegboard), "go")
    session = done.records[0]["sessionID"]
    other = replace(pegboard, project=pegboard.home / "other")
    other.project.mkdir()

    async with chat(other, "-s", session, ready="the chat cannot start") as terminal:
        seen = terminal.everything

    assert f"! session {session} works in" in seen
