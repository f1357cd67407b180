"""The websearch and codesearch tools; there are none until a search server is configured.

[plugins.websearch.options]
url = "https://searx.example.org"
key = "{env:SEARX_KEY}"
"""

from collections.abc import Iterable

from pegboard import InvalidInputError, Tool, ToolContext, ToolResult, hookimpl, tool
from pegboard.schema.config import Config, PluginConfig
from pegboard_plugins.websearch.searxng import Hit, SearXNG

DEFAULT_RESULTS = 8
MOST_RESULTS = 30
DEFAULT_TOKENS = 5000
MOST_TOKENS = 50_000
CHARS_PER_TOKEN = 4
SNIPPET_CHARS = 1000
BETWEEN = "\n\n"


async def _may_search(context: ToolContext, query: str) -> None:
    await context.ask("websearch", [query], always=["*"], metadata={"query": query})


async def _may_search_code(context: ToolContext, query: str) -> None:
    await context.ask("codesearch", [query], always=["*"], metadata={"query": query})


def search_tools(server: SearXNG) -> list[Tool]:
    """Both tools over a server."""

    @tool(asks=_may_search)
    async def websearch(
        context: ToolContext, query: str, numResults: int = DEFAULT_RESULTS
    ) -> ToolResult:
        """Search the web: titles, addresses and excerpts; webfetch gets a page itself."""
        await _may_search(context, query)
        hits = await server.search(query, "general")
        wanted = min(max(numResults, 1), MOST_RESULTS)
        return _result(query, [_entry(hit) for hit in hits[:wanted]])

    @tool(asks=_may_search_code)
    async def codesearch(
        context: ToolContext, query: str, tokensNum: int = DEFAULT_TOKENS
    ) -> ToolResult:
        """Search the web for code and documentation of libraries, APIs and tools.

        tokensNum limits the length of the answer.
        """
        await _may_search_code(context, query)
        hits = await server.search(query, "it")
        limit = min(max(tokensNum, 1), MOST_TOKENS) * CHARS_PER_TOKEN
        return _result(query, _within(limit, (_entry(hit) for hit in hits)))

    return [websearch, codesearch]


def _entry(hit: Hit) -> str:
    text = " ".join((hit.content or "").split())[:SNIPPET_CHARS]
    return "\n".join(line for line in (hit.title.strip(), hit.url, text) if line)


def _within(limit_chars: int, entries: Iterable[str]) -> list[str]:
    """As many entries as fit, at least a piece of the first."""
    chosen: list[str] = []
    for entry in entries:
        if limit_chars <= 0:
            break
        chosen.append(entry[:limit_chars])
        limit_chars -= len(entry) + len(BETWEEN)
    return chosen


def _result(query: str, entries: list[str]) -> ToolResult:
    output = BETWEEN.join(entries) or "No search results found. Try another query."
    return ToolResult(output=output, title=query, metadata={"results": len(entries)})


@hookimpl
async def register_tools(config: Config) -> list[Tool]:
    """The tools, if `plugins.websearch.options.url` names a server.

    :raises InvalidInputError: when it is no address.
    """
    options = config.plugins.get("websearch", PluginConfig()).options
    url = options.get("url")
    if not url:
        return []
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise InvalidInputError(
            f"plugins.websearch.options.url is {url!r}, not the http(s) address of a SearXNG server"
        )
    return search_tools(SearXNG(url, key=str(options.get("key") or "")))
