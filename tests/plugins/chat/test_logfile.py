"""What is logged while a chat runs goes to its log file, and not to the screen."""

from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine

SOURCE = """
import logging
from pegboard import hookimpl
from pegboard_plugins.chat import SlashCommand

async def log(context, argument):
    logging.getLogger("pegboard.plugins").warning("something held up everything")
    logging.getLogger("elsewhere").error("a library logs, too")
    context.say("both are logged")

@hookimpl
def register_slash():
    return (SlashCommand(name="log", help="log", action=log),)
"""


async def test_what_is_logged_goes_to_the_file_and_not_to_the_screen(pegboard: CommandLine) -> None:
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(SOURCE)
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("/log")
        await terminal.see("both are logged")
        await terminal.quiet()

    file = pegboard.home / "state" / "chat.log"
    logged = [line.split(" ", 2)[2] for line in file.read_text().splitlines()]
    assert logged == [
        "WARNING pegboard.plugins something held up everything",
        "ERROR elsewhere a library logs, too",
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    assert "held up" not in terminal.everything
    assert "a library" not in terminal.everything
