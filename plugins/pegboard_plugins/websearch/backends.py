"""What answers the searches of the web: one's own server, or a service that a plugin asks."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

SearchKind = Literal["web", "code"]
"""What is wanted: pages of any kind, or code and documentation for programmers."""


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A page that was found; `text` is what it says around the words of the query."""

    url: str
    title: str = ""
    text: str = ""


class SearchBackend(Protocol):
    """A way to search the web; the newest that plugins register acts, unless the user names one."""

    name: str
    """What the user's configuration and errors call it."""

    async def search(self, query: str, *, kind: SearchKind, limit: int) -> Sequence[SearchHit]:
        """The pages, best first; more than `limit` are not looked at.

        The tool waits 30 seconds at most. A `ToolError` tells the model what is wrong, any other
        error counts as a failure of the tool.
        """
        ...
