"""Instruction files: `AGENTS.md` and its like, and what the configuration names.

A file that an agent has written is material until the user accepts it. The session goes by the
text that it had before; what it changed itself counts from the next session on.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

import pegboard.files
import pegboard.unstable
from pegboard import PendingCall, SessionView, ToolResult, hookimpl
from pegboard.schema.part import Completed, ToolPart

NAMES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
LIMIT_BYTES = 32 * 1024
"""How much of one file is given to the model."""
_WILDCARDS = frozenset("*?[")


@hookimpl
async def chat_system_transform(
    session: SessionView, system: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The system prompt of a turn, with one piece for each instruction file at the end.

    The files are looked at once per prompt: what the model was told first in a turn it is told
    in all of it, so that the provider's cache holds and a step waits for no disk.
    """
    if session.purpose != "turn":
        return None
    told = _told(session.id, session.turns[-1].prompt_id) if session.turns else []
    if not told:
        told.append(await asyncio.to_thread(_pieces, session))
    return (*system, *told[-1]) if told[-1] else None


@lru_cache(maxsize=128)
def _told(session_id: str, prompt_id: str) -> list[tuple[str, ...]]:  # noqa: ARG001 - the key
    """What the requests of one prompt are told, once it is known."""
    return []


@hookimpl
async def tool_execute_after(
    session: SessionView, call: PendingCall, result: ToolResult
) -> ToolResult | None:
    """What `read` answered, with the instructions of the folders that the file is in.

    Folders above the session's directory do not count, nor do files that the model has got
    already. `loaded` in the metadata names the new ones.
    """
    path = call.input.get("filePath")
    if call.tool != "read" or not isinstance(path, str):
        return None
    return await asyncio.to_thread(_with_nested, session, call, result, session.directory / path)


def _with_nested(
    session: SessionView, call: PendingCall, result: ToolResult, path: Path
) -> ToolResult | None:
    claimed = _claimed(call.message_id)
    nested = [file for file in _nested(session, path) if file not in claimed]
    if not nested:
        return None  # as for most files: then nobody has to look through the session
    changed = pegboard.unstable.changed_files(session.turns)
    known = {*instruction_files(session), *_loaded(session), *changed, path.resolve()}
    known |= _unseen(session, nested)
    found = [file for file in nested if file not in known]
    claimed.update(found)
    pieces = [piece for file in found if (piece := _piece(file, session.id))]
    if not pieces:
        return None
    loaded = [*result.metadata.get("loaded", ()), *map(str, found)]
    return replace(
        result,
        output="\n\n".join((result.output, *pieces)),
        metadata={**result.metadata, "loaded": loaded},
    )


@lru_cache(maxsize=128)
def _claimed(message_id: str) -> set[Path]:  # noqa: ARG001 - each message has its own
    """What the reads of one message have brought: they run at once and cannot see each other."""
    return set()


def _nested(session: SessionView, path: Path) -> Iterator[Path]:
    """The instruction file of each folder from the directory down to the file's."""
    folder = path.resolve().parent
    if not folder.is_relative_to(session.directory):
        return
    between = [each for each in (folder, *folder.parents) if session.directory in each.parents]
    for each in reversed(between):
        usable = _inside((each / name for name in NAMES), session.worktree)
        yield from list(usable)[:1]


def _loaded(session: SessionView) -> Iterator[Path]:
    for turn in session.turns:
        for part in turn.parts:
            if (
                isinstance(part, ToolPart)
                and part.tool == "read"
                and isinstance(part.state, Completed)
                and part.state.time.compacted is None
            ):
                yield from map(Path, part.state.metadata.get("loaded", ()))


def instruction_files(session: SessionView) -> tuple[Path, ...]:
    """The session's instruction files, resolved, each once.

    First those of the first name of `NAMES` that any folder has, from the worktree's root down
    to the directory; then the entries of the configuration in their order. A relative entry is
    looked for in each of these folders, and never counts if it leads out of the worktree.
    """
    folders = _folders(session)
    found = list[Path]()
    for name in NAMES:
        found = list(_inside((folder / name for folder in folders), session.worktree))
        if found:
            break
    for entry in session.config.instructions:
        if Path(entry).is_absolute():
            path = Path(entry)
            found += _files(_matching(session.id, path.parent, path.name))
        else:
            matching = (path for each in folders for path in _matching(session.id, each, entry))
            found += _inside(matching, session.worktree)
    return tuple(dict.fromkeys(found))


def _folders(session: SessionView) -> tuple[Path, ...]:
    directory, root = session.directory, session.worktree
    above = [folder for folder in directory.parents if folder.is_relative_to(root)]
    return (*reversed(above), directory)


def _matching(session_id: str, folder: Path, pattern: str) -> tuple[Path, ...]:
    if _WILDCARDS.isdisjoint(pattern):
        return (folder / pattern,)
    return _globbed(session_id, folder, pattern)


@lru_cache(maxsize=256)
def _globbed(session_id: str, folder: Path, pattern: str) -> tuple[Path, ...]:  # noqa: ARG001
    """What a pattern finds: once per session, since looking through a tree takes long."""
    return tuple(sorted(folder.glob(pattern)))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Those that are files, resolved; none of secrets, under whatever name."""
    found = ((path, path.resolve()) for path in paths if path.is_file())
    return (real for path, real in found if not any(map(pegboard.files.secret_path, (path, real))))


def _inside(paths: Iterable[Path], worktree: Path) -> Iterator[Path]:
    """Those in the worktree; a link to another kind of file (`AGENTS.md` to `.env`) is none."""
    root = worktree.resolve()
    honest = (path for path in paths if path.resolve().suffix == path.suffix)
    return (path for path in _files(honest) if path.is_relative_to(root))


def _pieces(session: SessionView) -> tuple[str, ...]:
    """The files that have a text, each text once."""
    files = instruction_files(session)
    material = pegboard.unstable.changed_files(session.turns) | _unseen(session, files)
    before = _texts_of(session.id)
    for file in files:
        if file not in material:
            before[file] = _content(file)
    texts = {text: file for file in reversed(files) if (text := before.get(file))}
    first = {file: text for text, file in texts.items()}
    return tuple(_marked(file, first[file], session.id) for file in files if file in first)


def _unseen(session: SessionView, files: Iterable[Path]) -> frozenset[Path]:
    """Return the files that an agent has written and the user has not accepted."""
    if session.places is None or not session.places.unseen_documents.exists():
        return frozenset()
    from pegboard_plugins.shared.frontend import UnseenDocuments  # where agents have written some

    return UnseenDocuments(session.places.unseen_documents).among(files)


@lru_cache(maxsize=128)
def _texts_of(session_id: str) -> dict[Path, str]:  # noqa: ARG001 - the key
    """The text of each file as the session found it."""
    return {}


def _piece(file: Path, session_id: str) -> str:
    """The file's text between its marks; empty when there is none to give."""
    text = _content(file)
    return _marked(file, text, session_id) if text else ""


def _marked(file: Path, text: str, session_id: str) -> str:
    """The text between tags that only who knows the session's id can write."""
    from pegboard_plugins.shared.frontend import as_source, disarmed  # where there are instructions

    source, inner = as_source(str(file)), disarmed(text)
    return f'<instructions session="{session_id}" from="{source}">\n{inner}\n</instructions>'


def _content(file: Path) -> str:
    try:
        stamp = file.stat()
        return _text(file, stamp.st_mtime_ns, stamp.st_size)
    except OSError:
        return ""  # it went away, or is not for us to read


@lru_cache(maxsize=256)
def _text(file: Path, mtime_ns: int, size: int) -> str:  # noqa: ARG001 - the time is the key
    # What has become a link since it was found leads nowhere, and a pipe holds nobody up.
    with os.fdopen(pegboard.files.open_resolved(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
        content = opened.read(LIMIT_BYTES)
    text = content.decode("utf-8", "replace").strip()
    if size > LIMIT_BYTES:
        text += f"\n(Cut here: the file has {size:,} bytes. Read it if you need the rest.)"
    return text
