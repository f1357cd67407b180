"""The hook that the search tools bring, and what answers their searches."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from pegboard import hookspec
from pegboard.schema.config import Config

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


@hookspec("collect")
def register_search_backends(config: Config) -> Sequence[SearchBackend] | None:
    """Ways to search the web, for the tools `websearch` and `codesearch`.

    Called once when the App opens, before `register_tools`; without any answer the tools are
    not offered. The newest backend acts, unless `plugins.websearch.options.backend` names
    another. Collect: a plugin that raises is reported and left out.

    - config: the merged configuration; the plugin's own is under `config.plugins[name]`.

    Since 0.1.
    """
