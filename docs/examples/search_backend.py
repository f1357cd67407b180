"""A search backend: the tools `websearch` and `codesearch` look into an archive of one's own.

`kind` is `web` or `code`. A `ToolError` tells the model what is wrong. The tool waits 30 seconds.
"""

import asyncio
from collections.abc import Sequence

from pegboard import ToolError, hookimpl
from pegboard_plugins.websearch import SearchBackend, SearchKind, WebHit

PAGES: dict[SearchKind, dict[str, str]] = {
    "web": {"https://docs.example.org/hooks": "Hooks are called in the order of registration."},
    "code": {"https://docs.example.org/api": "def roll(sides: int = 6) -> int"},
}


class Archive:
    """Finds the pages that have all words of a query."""

    name = "archive"

    async def search(self, query: str, *, kind: SearchKind, limit: int) -> Sequence[WebHit]:
        """Return the pages, in the order of the archive.

        :raises ToolError: for a query without a word.
        """
        words = query.lower().split()
        if not words:
            raise ToolError("the archive needs a word to look for")
        await asyncio.sleep(0)  # here a service would be asked
        pages = PAGES[kind]
        found = [url for url in pages if all(word in pages[url].lower() for word in words)]
        return [WebHit(url=url, text=pages[url]) for url in found[:limit]]


@hookimpl(optionalhook=True)
async def register_search_backends() -> Sequence[SearchBackend]:
    """Return the one backend."""
    return (Archive(),)
