"""The files of a project on the machine of the server."""

from typing import Literal

from pegboard_client.address import route
from pegboard_client.aio.link import AsyncLink
from pegboard_plugins.shared.frontend import FileChange, FileContent, FileNode, Match


class AsyncFiles:
    """The files of the client's project; paths are relative to its directory."""

    def __init__(self, link: AsyncLink) -> None:
        self._link = link

    async def list(self, path: str = ".") -> tuple[FileNode, ...]:
        """Return the entries of a folder, folders first."""
        return await self._link.get(tuple[FileNode, ...], route("file"), path=path)

    async def read(self, path: str) -> FileContent:
        """Return the content of a file, or an empty content if the file does not exist."""
        return await self._link.get(FileContent, route("file", "content"), path=path)

    async def find(
        self, query: str, *, kind: Literal["file", "directory"] | None = None, limit: int = 10
    ) -> tuple[str, ...]:
        """Return the paths that match the query best; folders end with a slash."""
        place = route("find", "file")
        return await self._link.get(tuple[str, ...], place, query=query, type=kind, limit=limit)

    async def search(self, pattern: str) -> tuple[Match, ...]:
        """Return the lines that match a regular expression."""
        return await self._link.get(tuple[Match, ...], route("find"), pattern=pattern)

    async def changes(self) -> tuple[FileChange, ...]:
        """Return the files that differ from the last commit."""
        return await self._link.get(tuple[FileChange, ...], route("file", "status"))
