"""The project's files: folders, names, contents and search."""

import asyncio
import base64
import mimetypes
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from pegboard import App, InvalidInputError, PermissionDeniedError
from pegboard.files import open_resolved, walk_files
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.filesearch import best_names, no_system, search
from pegboard_plugins.server.gitdiff import changes
from pegboard_plugins.server.responses import answer
from pegboard_plugins.server.serverstate import Here
from pegboard_plugins.shared.frontend import FileChange, FileContent, FileNode, Match

LONGEST_BYTES = 10 << 20
MOST_NAMES = 200
MOST_FILES = 100_000
WALK_WITHIN_S = 5.0
"""Of a folder without an end, such as a home, the outer files are enough to name one."""
routes = APIRouter()

Text = Annotated[str, Query(max_length=4096)]
Count = Annotated[int, Query(ge=1, le=MOST_NAMES)]


@routes.get("/file", **operation("file.list", gives=tuple[FileNode, ...]))
async def listing(app: Here, path: Text) -> Response:
    """List the entries of a folder, folders first."""
    return answer(await asyncio.to_thread(_nodes, app.workspace.directory, resolve_path(app, path)))


@routes.get("/file/content", **operation("file.read", gives=FileContent))
async def content(app: Here, path: Text) -> Response:
    """Return the content of a file, or an empty content if the file does not exist."""
    return answer(await asyncio.to_thread(_content, resolve_path(app, path)))


@routes.get("/file/status", **operation("file.status", gives=tuple[FileChange, ...]))
async def status(app: Here) -> Response:
    """List the files that differ from the last commit."""
    return answer(await changes(app))


@routes.get("/find", **operation("find.text", gives=tuple[Match, ...]))
async def find_text(
    app: Here, pattern: Annotated[str, Query(min_length=1, max_length=1000)]
) -> Response:
    """List the lines that a regular expression matches."""
    return answer(await search(app.workspace.directory, pattern, root=app.workspace.worktree))


@routes.get("/find/file", **operation("find.files", gives=tuple[str, ...]))
async def find_file(
    app: Here,
    query: Text,
    *,
    dirs: Literal["true", "false"] = "true",
    kind: Annotated[Literal["file", "directory"] | None, Query(alias="type")] = None,
    limit: Count = 10,
) -> Response:
    """List the paths that match a text best; folders end with a slash."""
    chosen = kind or ("file" if dirs == "false" else None)
    return answer(await asyncio.to_thread(_find_names, app, query, chosen, limit))


@routes.get("/api/fs/find", **operation("v2.fs.find", gives=dict[str, Any]))
async def find_for_completion(
    app: Here,
    query: Text = "",
    limit: Count = 20,
    kind: Annotated[str | None, Query(alias="type")] = None,
) -> Response:
    """List the paths that match a text best, in the format of newer terminal interfaces."""
    found = await asyncio.to_thread(_find_names, app, query, kind, limit)
    workspace = app.workspace
    where = {
        "directory": str(workspace.directory),
        "project": {"id": workspace.project_id, "directory": str(workspace.worktree)},
    }
    data = [{"path": name, "type": "directory" if name.endswith("/") else "file"} for name in found]
    return answer({"location": where, "data": data})


@routes.get("/find/symbol", **operation("find.symbols", gives=tuple[dict[str, Any], ...]))
async def find_symbol(_app: Here, query: Text) -> Response:  # noqa: ARG001 - the protocol's
    """Return no symbols, because no language server is asked for symbols of a whole project."""
    return answer([])


def resolve_path(app: App, path: str) -> Path:
    """Return the path in the worktree, with all symlinks resolved.

    :raises PermissionDeniedError: when it is outside, or not one of a project's files.
    :raises InvalidInputError: for a text that is not a path.
    """
    if "\0" in path:
        raise InvalidInputError("a path has no NUL")
    try:
        found = (app.workspace.directory / path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInputError(f"not a path: {path[:200]!r}") from error
    if not found.is_relative_to(app.workspace.worktree):
        raise PermissionDeniedError(f"outside of the project: {path[:200]}")
    return no_system(found)


def _nodes(directory: Path, folder: Path) -> list[FileNode]:
    try:
        with os.scandir(folder) as entries:
            files, is_whole = _files(folder)
            known = {name.split("/", 1)[0] for name in files}
            found = [
                FileNode(
                    name=_decode(entry.name),
                    path=_decode(os.path.relpath(entry.path, directory)),
                    absolute=_decode(entry.path),
                    type="directory" if _is_folder(entry) else "file",
                    ignored=is_whole and _decode(entry.name) not in known,
                )
                for entry in entries
                if entry.name != ".git"
            ]
    except OSError:
        return []
    return sorted(found, key=lambda node: (node.type == "file", node.name.lower()))


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a symlink that leads back to itself
        return False


def _content(path: Path) -> FileContent:
    try:
        # What was checked is what is read: no link that was put there since, no wait for a pipe.
        with os.fdopen(open_resolved(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return FileContent(type="text", content="")
            raw = file.read(LONGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return FileContent(type="text", content="")
    except OSError as error:
        raise PermissionDeniedError(f"{path.name} cannot be read: {error.strerror}") from error
    if len(raw) > LONGEST_BYTES:
        raise InvalidInputError(f"{path.name} has more than {LONGEST_BYTES:,} bytes")
    return _file_content(path, raw)


def _file_content(path: Path, raw: bytes) -> FileContent:
    kind = mimetypes.guess_type(path.name)[0] or ""
    if b"\0" not in raw and not kind.startswith("image/"):
        return FileContent(type="text", content=raw.decode("utf-8", "replace"))
    encoded = base64.b64encode(raw).decode()
    return FileContent(type="binary", content=encoded, encoding="base64", mime_type=kind or None)


def _find_names(app: App, query: str, kind: str | None, limit: int) -> list[str]:
    """Return the names in the project that match `query` best; `kind` None stands for all kinds."""
    files, _ = _files(app.workspace.directory)
    names = [*_folders(files), *files]
    if kind in {"file", "directory"}:
        names = [name for name in names if name.endswith("/") == (kind == "directory")]
    return best_names(names, query, limit)


def _files(folder: Path) -> tuple[list[str], bool]:
    """Return the files that git does not ignore, files near the top first, up to a limit.

    The second value is False if the limit of files or of time was reached.
    """
    start = len(str(folder).rstrip("/")) + 1
    ends_at = time.monotonic() + WALK_WITHIN_S
    files: list[str] = []
    for path in walk_files(folder):
        if len(files) == MOST_FILES or time.monotonic() > ends_at:
            return files, False
        files.append(_decode(path[start:]))
    return files, True


def _folders(files: Iterable[str]) -> Iterable[str]:
    """Return the folders of these files, each with a trailing slash."""
    found: dict[str, None] = {}
    for name in files:
        for place, letter in enumerate(name):
            if letter == "/":
                found[name[: place + 1]] = None
    return found


def _decode(name: str) -> str:
    """Decode a file name; drop the bytes that are not valid UTF-8."""
    return os.fsencode(name).decode("utf-8", "replace")
