"""The mentions `@file` and `@agent` in a prompt: their parser and their lookup.

Only text that a user typed is parsed. Output of a model, a tool or a file is never parsed, or it
could attach files in the user's name.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from pegboard import App, Workspace
from pegboard.schema.config import Agent
from pegboard.schema.part import DIRECTORY_MIME, AgentInput, FileInput, TextInput, mime_of
from pegboard.unstable import mention, open_workspace

MENTIONS_LIMIT = 50
"""The maximum number of mentions in a text; further mentions stay plain text."""

_MENTION = re.compile(r"(?<![\w`@/])@(?P<name>\.?[^\s`,.@]+(?:\.+[^\s`,.@]+)*)")
_LINES = re.compile(r"#L?(?P<start>\d+)(?:-L?(?P<end>\d+))?$")
_TRAILING = ";:!?)]}>'\""

MentionInput = FileInput | AgentInput | TextInput


class Mention(msgspec.Struct, frozen=True, kw_only=True):
    """The name after an `@`, and the lines that a suffix such as `#10-20` selects."""

    name: str
    start: int | None = None
    end: int | None = None


class MentionedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A mentioned file or folder: the path as mentioned, and the path with symlinks resolved."""

    mention: Mention
    given: Path
    path: Path
    is_dir: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names that rules may match: the path as mentioned, and the symlink's target."""
        return tuple(dict.fromkeys((os.path.normpath(self.given), str(self.path))))

    def part(self) -> FileInput:
        """Return the part of a prompt that attaches the file."""
        url = self.path.as_uri()
        if self.is_dir:
            return FileInput(mime=DIRECTORY_MIME, url=url, filename=self.mention.name)
        window = {"start": self.mention.start, "end": self.mention.end}
        query = urlencode({name: value for name, value in window.items() if value is not None})
        return FileInput(
            mime=mime_of(self.path),
            url=f"{url}?{query}" if query else url,
            filename=self.mention.name,
        )


def mentions(text: str) -> tuple[Mention, ...]:
    """Return the distinct mentions in a text, in order.

    A letter, a backtick, a slash or another `@` before the `@` prevents a mention. A full stop,
    comma or bracket that ends the sentence does not belong to the name.
    """
    found = (_mention(match["name"]) for match in _MENTION.finditer(text))
    return tuple(dict.fromkeys(mention for mention in found if mention.name))[:MENTIONS_LIMIT]


def _mention(raw: str) -> Mention:
    name = raw.rstrip(_TRAILING)
    lines = _LINES.search(name)
    if lines is None:
        return Mention(name=name)
    start = int(lines["start"])
    end = int(lines["end"]) if lines["end"] else start
    return Mention(name=name[: lines.start()], start=start, end=end)


def find_files(wanted: Iterable[Mention], workspace: Workspace) -> tuple[MentionedFile, ...]:
    """Return the mentioned files and folders that exist inside the workspace's worktree.

    A relative name starts at the working directory, or else at the worktree's root. A path that
    leads out of the worktree, by `..`, an absolute path or a symlink, is not found.
    """
    found = (_find(mention, workspace) for mention in wanted)
    return tuple(each for each in found if each is not None)


def _find(mention: Mention, workspace: Workspace) -> MentionedFile | None:
    root = workspace.worktree.resolve()
    for base in dict.fromkeys((workspace.directory, workspace.worktree)):
        given = base / mention.name
        try:
            path = given.resolve(strict=True)
            is_dir = path.is_dir()
        except (OSError, RuntimeError, ValueError):
            continue
        if path.is_relative_to(root) and (is_dir or path.is_file()):
            return MentionedFile(mention=mention, given=given, path=path, is_dir=is_dir)
    return None


def missing_files(text: str, directory: Path) -> tuple[str, ...]:
    """Return a warning for each mention in `text` that looks like a file and does not exist.

    A name looks like a file if it has a dot or a slash, and no colon. A name with a colon may
    belong to a plugin. The function reads the disk.
    """
    wanted = [
        each
        for each in mentions(text)
        if ("." in each.name or "/" in each.name) and ":" not in each.name
    ]
    if not wanted:
        return ()
    found = {file.mention for file in find_files(wanted, open_workspace(directory))}
    return tuple(
        f"@{each.name} is sent as text: there is no such file"
        for each in wanted
        if each not in found
    )


def parts_for(
    wanted: Iterable[Mention],
    found: Mapping[Mention, FileInput | str],
    agents: Mapping[str, Agent],
) -> tuple[MentionInput, ...]:
    """Return prompt parts for the mentions: a file, a subagent, or a sentence about a refused file.

    `found` maps a mention to its file part, or to the reason why the file may not be attached.
    Mentions of unknown names get no part.
    """
    parts: list[MentionInput] = []
    for each in wanted:
        match found.get(each):
            case FileInput() as file:
                parts.append(file)
            case str(reason):
                text = f"[@{each.name} is not attached: {reason}]"
                parts.append(TextInput(text=text, synthetic=True))
            case None:
                agent = agents.get(each.name)
                if agent is not None and agent.mode != "primary":
                    parts.append(AgentInput(name=agent.name))
    return tuple(parts)


async def mentioned(
    app: App, session_id: str, text: str, *, agent: str | None = None
) -> tuple[MentionInput, ...]:
    """Return the prompt parts of all files and agents in a text, and of names that plugins know.

    A file that the agent may not read without a permission is replaced by a sentence that says so.

    :raises NotFoundError: when the session does not exist.
    """
    wanted = mentions(text)
    if not wanted:
        return ()
    name = agent or (await app.session(session_id)).agent or app.default_agent().name
    if name not in app.agents:
        return ()  # the prompt is stored, and then the run says so
    files = await asyncio.to_thread(find_files, wanted, app.workspace)
    found = {file.mention: await _attachable(app, session_id, file, name) for file in files}
    unknown = [each.name for each in wanted if each not in found and each.name not in app.agents]
    answers = [await app.hooks.collect(mention, app=app, name=each) for each in unknown]
    brought = (answer.value for answer in chain(*answers))
    return (*parts_for(wanted, found, app.agents), *brought)


async def _attachable(
    app: App, session_id: str, file: MentionedFile, agent: str
) -> FileInput | str:
    """Return the file as a part of a prompt, or a reason why reading it needs a permission."""
    facts = {"filepath": str(file.path)}
    verdict = await app.policy.decide(session_id, "read", file.names, agent=agent, metadata=facts)
    return file.part() if verdict.action == "allow" else verdict.reason or "it needs a permission"
