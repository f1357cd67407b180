"""The chat's slash command /hooks, which lists the hooks and their runs in this process."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import App, Host
from pegboard_plugins.chat import ChatContext, SlashCommand
from pegboard_plugins.commandhooks.foundhooks import found_files, is_waiting
from pegboard_plugins.commandhooks.hookcommand import ForeignFiles

if TYPE_CHECKING:
    from pegboard_plugins.commandhooks.hookruns import HookRuns

HELP = "show the command hooks of other agents"


def hooks_command(
    app: Host, files: ForeignFiles, runs: Callable[[], Mapping[str, "HookRuns"]]
) -> SlashCommand:
    """Return the slash command /hooks."""

    async def show(context: ChatContext, argument: str) -> None:
        del argument
        home = Path((await app.user_env()).get("HOME") or Path.home())
        lines = await asyncio.to_thread(lambda: tuple(_lines(app, files, home, runs())))
        await context.open_page("Hooks", "\n".join(lines) or "no hooks are found here")

    return SlashCommand(name="hooks", help=HELP, action=show)


def _lines(
    app: Host, files: ForeignFiles, home: Path, runs: Mapping[str, "HookRuns"]
) -> Iterator[str]:
    if not isinstance(app, App):
        return
    for file in found_files(app, files, home):
        waits = is_waiting(app, file)
        yield f"{file.path} ({'not trusted: /trust' if waits else file.mark})"
        for hook in file.hooks:
            words = " ".join((hook.command, *(hook.args or ())))
            ran = runs.get(hook.label)
            yield f"  {hook.name} {hook.matcher or '*'}: {words}{f' ({ran})' if ran else ''}"
        for note in file.notes:
            yield f"  {note}"
