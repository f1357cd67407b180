"""The slash commands: the chat's own, those of plugins, and those that become prompts."""

import os.path
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import PegboardError
from pegboard.plugins import nearest_names
from pegboard.schema.config import Command
from pegboard_plugins.chat import choosing, firstrun, looking, permissionmode, sessioning
from pegboard_plugins.chat.desk import Act, Desk, Slash
from pegboard_plugins.chat.guestcontext import GuestContext
from pegboard_plugins.chat.hookspecs import SlashCommand

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Facts

OWN: Mapping[str, tuple[str, Act]] = {
    "help": ("list the commands", looking.show_help),
    "keys": ("list the keys", looking.show_keys),
    "model": ("choose the model", choosing.choose_model),
    "agent": ("choose the agent", choosing.choose_agent),
    "effort": ("choose how hard the model thinks", choosing.choose_effort),
    "mode": ("choose what runs before you are asked", permissionmode.choose_mode),
    "theme": ("choose the colours", choosing.choose_theme),
    "new": ("start a new session", sessioning.begin),
    "sessions": ("switch to another session", sessioning.choose_session),
    "resume": ("switch to another session", sessioning.choose_session),
    "fork": ("continue in a copy of the session", sessioning.fork),
    "rename": ("give the session a title", sessioning.rename),
    "undo": ("undo the last prompt and its changes", sessioning.undo),
    "redo": ("redo what was undone", sessioning.redo),
    "rewind": ("go back to an earlier prompt", sessioning.rewind),
    "compact": ("summarise the history", sessioning.compact),
    "diff": ("show the changes in files", looking.show_diff),
    "context": ("show what fills the context window", looking.show_context),
    "todo": ("show the task list", looking.show_todo),
    "tools": ("list the tools", looking.show_tools),
    "plugins": ("list the plugins", looking.show_plugins),
    "trace": ("show what plugins changed in requests", looking.show_trace),
    "config": ("show the settings and where they come from", looking.show_config),
    "status": ("show version, session, mode, agent and model", looking.show_status),
    "permissions": ("list saved approvals", looking.show_permissions),
    "trust": (
        "review this project's code, and the instructions that an agent wrote",
        sessioning.trust,
    ),
    "reload": ("reload plugins and settings", sessioning.reload),
    "export": ("write the session to a file", sessioning.export),
    "copy": ("copy the last answer, or the n-th last", looking.copy),
    "login": ("add an API key", firstrun.login),
    "doctor": ("check the setup", sessioning.doctor),
    "init": ("let the agent write AGENTS.md", sessioning.init),
    "quit": ("leave", sessioning.leave),
}
ALIASES = {"exit": "quit", "clear": "new", "models": "model"}
"""Names by which other chats call these commands; a command of that name comes first."""
_FOLDERS = frozenset({"command", "commands"})
BY_KEY: Mapping[str, Act] = {
    "next_agent": choosing.next_agent,
    "next_model": choosing.next_model,
    "last_model": choosing.last_model,
    "next_effort": choosing.next_effort,
    "next_mode": permissionmode.next_mode,
    "output": looking.show_output,
    "key_card": looking.show_key_card,
    "transcript": looking.show_transcript,
}


def table(
    commands: Sequence[Command], guests: Mapping[str, tuple[str, SlashCommand]]
) -> dict[str, Slash]:
    """Return all slash commands by name; plugins cannot replace the chat's own."""
    found = {
        each.name: Slash(name=each.name, help=each.description or "a prompt of the project's")
        for each in commands
    }
    for name, (plugin, command) in guests.items():
        found[name] = Slash(name=name, help=command.help, act=_guest(plugin, command))
    for name, (text, act) in OWN.items():
        if not (name == "init" and name in found):
            found[name] = Slash(name=name, help=text, act=act)
    return dict(sorted(found.items()))


def _guest(plugin: str, command: SlashCommand) -> Act:
    async def act(chat: Desk, argument: str) -> None:
        context = GuestContext(chat)
        await chat.guests.run(
            plugin,
            f"/{command.name}",
            lambda: command.action(context, argument),
            waits=lambda: context.waits,
        )

    return act


async def run(chat: Desk, text: str) -> bool:
    """Run the text if it is a slash command; return whether it is."""
    name, _, argument = text[1:].partition(" ")
    known = _known(chat, name)
    talk = chat.talk
    assert talk is not None
    if known is None:
        if not name or "/" in name or "\n" in name:
            return False
        with suppress(PegboardError):  # trust may be newer than the list
            chat.slashes = table(await talk.feed.commands(), chat.guests.slash)
        known = _known(chat, name)
    if known is None:
        chat.warn(_missing(name, [*chat.slashes, *ALIASES], talk.feed.facts))
        chat.draft.put_back(text)
        return True
    words, files = chat.draft.expanded(argument)
    if known.act is not None:
        await known.act(chat, words)
    else:
        talk.send(talk.order(words, files=files, command=known.name, typed=text))
    return True


def _known(chat: Desk, name: str) -> Slash | None:
    return chat.slashes.get(name.strip()) or chat.slashes.get(ALIASES.get(name.strip(), ""))


def _missing(name: str, known: Sequence[str], facts: "Facts") -> str:
    """Return an error message for an unknown command: the nearest name, or which file to trust."""
    waiting = [os.path.relpath(each, facts.directory) for each in facts.untrusted]
    for path in waiting:
        is_command = not _FOLDERS.isdisjoint(Path(path).parts)
        if is_command and path.endswith(f"/{name.rpartition(':')[2]}.md"):
            return f"/{name} waits for your trust in {path}: /trust shows the file and asks"
    near = nearest_names(name, known, limit=1)
    hint = f"; did you mean /{near[0]}?" if near else ""
    settings = [path for path in waiting if not path.endswith(".md")][:1]
    also = f"\n{settings[0]} waits for your trust and may define it: /trust" if settings else ""
    return f"there is no command /{name}{hint}{also}"


async def act(chat: Desk, name: str) -> None:
    """Run the action `name`, which is that of a key or of one of the chat's own slash commands."""
    chosen = BY_KEY.get(name) or OWN[name][1]
    await chosen(chat, "")
