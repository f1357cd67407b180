"""Sessions that change files, as the model of a test tells them to."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pegboard import App, ToolContext, tool
from pegboard.providers import StreamEvent
from pegboard.schema.message import UserMessage
from pegboard.schema.part import PatchPart, ToolPart
from support.models.played import Answer, Played, ToolsPlugin, call, calls, opened, text
from support.tools.worktrees import git


@tool(permission="bash")
async def sh(command: str, context: ToolContext) -> str:
    """Run a command."""
    result = await context.run(["/bin/sh", "-c", command])
    return result.output


@tool(permission="edit", effect="edits")
async def put(path: str, content: str, context: ToolContext) -> str:
    """Write a file."""
    place = context.directory / path
    await context.files.replace(place, content.encode())
    await context.record_edit(place)
    return "written"


def shell(command: str) -> Sequence[StreamEvent]:
    """An answer that runs a command."""
    return calls(call("sh", f'{{"command": "{command}"}}'))


def written(path: str, content: str) -> Sequence[StreamEvent]:
    """An answer that writes a file."""
    return calls(call("put", f'{{"path": "{path}", "content": "{content}"}}'))


def full_repository(folder: Path) -> Path:
    """A repository with a file of each kind."""
    (folder / "src").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "src/b.txt").write_text("two\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "image.bin").write_bytes(bytes(range(256)))
    (folder / "link").symlink_to("a.txt")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


@asynccontextmanager
async def played(
    folder: Path, *answers: Sequence[StreamEvent] | Answer, **options: Any
) -> AsyncIterator[tuple[App, str]]:
    """An App that plays these answers, and a session of it."""
    provider = Played(*answers, text("done"))
    async with opened(folder, provider, ToolsPlugin(sh, put), **options) as app:
        yield app, (await app.create_session()).id


async def ask(app: App, session_id: str, said: str = "go") -> str:
    """The id of the prompt, after its answer."""
    await app.prompt(session_id, said)
    turns = await app.list_turns(session_id)
    return [turn.info.id for turn in turns if isinstance(turn.info, UserMessage)][-1]


async def patches(app: App, session_id: str) -> list[PatchPart]:
    """What the steps of a session have told of files."""
    turns = await app.list_turns(session_id)
    return [part for turn in turns for part in turn.parts if isinstance(part, PatchPart)]


async def calls_of(app: App, session_id: str) -> list[ToolPart]:
    """The calls of a session, in order."""
    turns = await app.list_turns(session_id)
    return [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - a process tells it by a file
            await asyncio.sleep(0.02)


def state(folder: Path) -> dict[str, object]:
    """All files with content, target or mode, without git's own."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(".git/") or name == ".git" or (path.is_dir() and not path.is_symlink()):
            continue
        content = path.readlink() if path.is_symlink() else path.read_bytes()
        found[name] = (content, bool(path.lstat().st_mode & 0o100))
    return found
