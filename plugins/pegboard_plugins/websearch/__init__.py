"""The websearch and codesearch tools, which need a search backend.

A plugin can provide one (`register_search_backends`), or the user can configure a SearXNG server:

[plugins.websearch.options]
url = "https://searx.example.org"
key = "{env:SEARX_KEY}"
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

import msgspec

import pegboard.unstable
from pegboard import (
    HookCalls,
    InvalidInputError,
    PermissionContext,
    Plugin,
    Tool,
    ToolError,
    ToolResult,
    hookimpl,
    hookspec,
    tool,
)
from pegboard.schema.config import Config
from pegboard.schema.part import Completed, ToolPart

if TYPE_CHECKING:
    import httpx

    from pegboard.display import Block

DEFAULT_RESULTS = 8
MOST_RESULTS = 30
DEFAULT_TOKENS = 5000
MOST_TOKENS = 50_000
CHARS_PER_TOKEN = 4
SNIPPET_CHARS = 1000
TIME_LIMIT_S = 30.0
ASKED_WITHIN_S = 60.0
"""Each plugin with backends has its own limit; all of them have this one."""
BETWEEN = "\n\n"


SearchKind = Literal["web", "code"]
"""What is wanted: pages of any kind, or code and documentation for programmers."""
_CATEGORIES: dict[SearchKind, str] = {"web": "general", "code": "it"}


SERVER_LIMIT_S = 25.0
ANSWER_BYTES = 4 << 20
_OK = 200
_FORBIDDEN = (401, 403)


class WebHit(msgspec.Struct, frozen=True, kw_only=True):
    """A search result; `text` is an excerpt of the web page around the words of the query."""

    url: str
    title: str = ""
    text: str = ""


class SearchBackend(Protocol):
    """A service that searches the web.

    The tools use the backend that was registered last, unless the user names another.
    """

    name: str
    """What the user's configuration and errors call it."""

    async def search(self, query: str, *, kind: SearchKind, limit: int) -> Sequence[WebHit]:
        """Return the results, the best first; the tool ignores results after `limit`.

        The tool waits at most 30 seconds. The model gets the text of a `ToolError`; any other error
        counts as a failure of the tool.
        """
        ...


@hookspec("collect", since="0.1")
def register_search_backends(config: Config) -> Sequence[SearchBackend] | None:
    """Return ways to search the web, for the tools `websearch` and `codesearch`.

    Called once when the App opens, before `register_tools`; without any answer the tools are
    not offered. The newest backend acts, unless `plugins.websearch.options.backend` names
    another. Collect: a plugin that raises is reported and left out.

    - config: the merged configuration; the plugin's own is under `config.plugins[name]`.

    ```python
    from collections.abc import Sequence

    from pegboard import hookimpl
    from pegboard_plugins.websearch import SearchBackend, SearchKind, WebHit


    class Nothing:
        name = "nothing"

        async def search(self, query: str, *, kind: SearchKind, limit: int) -> Sequence[WebHit]:
            return ()


    @hookimpl(optionalhook=True)
    async def register_search_backends() -> tuple[SearchBackend, ...]:
        return (Nothing(),)
    ```
    """


switch = dict.fromkeys(("websearch", "codesearch"), "plugins.websearch.options.url")


async def _may_search(context: PermissionContext, query: str) -> None:
    await context.require("websearch", [query], always=["*"], metadata={"query": query})


async def _may_search_code(context: PermissionContext, query: str) -> None:
    await context.require("codesearch", [query], always=["*"], metadata={"query": query})


def _drawn(part: ToolPart) -> "Block | None":
    """Return the search results for display, collapsed under the query and their number."""
    if not isinstance(part.state, Completed):
        return None
    import pegboard.unstable  # not before a call is drawn
    from pegboard.display import Block

    title = pegboard.unstable.subject_of(part.state.input)
    if isinstance(many := part.state.metadata.get("results"), int):
        title += f" · {pegboard.unstable.counted(many, 'result')}"
    return Block(
        title=title,
        lines=pegboard.unstable.lines_of(part.state.output, "dim"),
        fold=0,
    )


def search_tools(backend: SearchBackend) -> list[Tool]:
    """Return the tools `websearch` and `codesearch`, which use the backend."""

    @tool(requires=_may_search, effect="reads", draw=_drawn)
    async def websearch(query: str, numResults: int = DEFAULT_RESULTS) -> ToolResult:
        """Search the web: titles, addresses and excerpts; webfetch gets a page itself."""
        limit = min(max(numResults, 1), MOST_RESULTS)
        hits = await _search(backend, query, "web", limit)
        return _result(query, [_entry(hit) for hit in hits])

    @tool(requires=_may_search_code, effect="reads", draw=_drawn)
    async def codesearch(query: str, tokensNum: int = DEFAULT_TOKENS) -> ToolResult:
        """Search the web for code and documentation of libraries, APIs and tools.

        tokensNum limits the length of the answer.
        """
        limit = min(max(tokensNum, 1), MOST_TOKENS) * CHARS_PER_TOKEN
        hits = await _search(backend, query, "code", MOST_RESULTS)
        return _result(query, _within(limit, (_entry(hit) for hit in hits)))

    return [websearch, codesearch]


async def _search(
    backend: SearchBackend, query: str, kind: SearchKind, limit: int
) -> Sequence[WebHit]:
    """Ask a backend, which may be a third party's code, for at most `limit` results.

    :raises ToolError: when the backend takes longer than 30 seconds or returns an invalid value.
    """
    allowed = asyncio.timeout(TIME_LIMIT_S)
    try:
        async with allowed:
            hits: object = await backend.search(query, kind=kind, limit=limit)
    except TimeoutError as error:
        if not allowed.expired():
            raise
        raise ToolError(f"{backend.name} took longer than {TIME_LIMIT_S:g} s") from error
    if not isinstance(hits, Sequence) or not all(isinstance(hit, WebHit) for hit in hits):
        raise ToolError(f"the search backend {backend.name} answered with something else than hits")
    return tuple(hits)[:limit]


def _entry(hit: WebHit) -> str:
    text = " ".join(hit.text.split())[:SNIPPET_CHARS]
    return "\n".join(line for line in (hit.title.strip(), hit.url, text) if line)


def _within(limit_chars: int, entries: Iterable[str]) -> list[str]:
    """Return the entries that fit into `limit_chars` characters; cut the last entry to fit."""
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


class WebSearchOptions(msgspec.Struct, frozen=True):
    """The options of the plugin.

    `url` and `key` belong to a SearXNG server. `backend` is the name of the backend to use.
    """

    url: str = ""
    key: str = ""
    backend: str | None = None


options = WebSearchOptions
"""What `plugins.websearch.options` can say."""


@hookimpl
def register_hooks() -> tuple[Callable[..., object], ...]:
    """Return the hook by which other plugins register search backends."""
    return (register_search_backends,)


@hookimpl(timeout_s=ASKED_WITHIN_S)
async def register_tools(config: Config, hooks: HookCalls, plugin: Plugin) -> list[Tool]:
    """Return the tools with the configured backend, or else the last registered backend.

    Return no tools if there is no backend and the configuration does not mention `websearch`.

    :raises InvalidInputError: when the configuration enables the tools without a backend, or names
        an unknown backend.
    """
    found = await hooks.collect(register_search_backends, config=config)
    search_backends = [*_own_server(plugin.options), *(answer.value for answer in found)]
    name = plugin.options.backend
    fitting = [each for each in search_backends if name in (None, each.name)]
    if fitting:
        return search_tools(fitting[-1])
    if "websearch" not in config.plugins:
        return []
    known = ", ".join(each.name for each in search_backends) or "none"
    missing = f"there is no search backend {name!r}" if name else "nothing searches the web"
    raise InvalidInputError(
        f"websearch and codesearch are off: {missing} (registered: {known}). Set"
        " plugins.websearch.options.url to a SearXNG server, or install a plugin with a backend"
    )


def _own_server(options: WebSearchOptions) -> list[SearchBackend]:
    """Return the backend for the user's SearXNG server, or nothing without one.

    :raises InvalidInputError: when the server's address is not valid.
    """
    if not options.url:
        return []
    if not options.url.startswith(("http://", "https://")):
        raise InvalidInputError(
            f"plugins.websearch.options.url is {options.url!r}, not the http(s) address of a"
            " SearXNG server"
        )
    return [SearXNG(options.url, key=options.key)]


class _Result(msgspec.Struct, frozen=True):
    url: str
    title: str | None = None
    content: str | None = None


class _SearchAnswer(msgspec.Struct, frozen=True):
    results: tuple[_Result, ...] = ()


class SearXNG:
    """The backend for a SearXNG server at `url`; `key`, if any, is sent as a bearer token.

    The user chose the address, so it may be on this machine or its network.
    """

    name = "searxng"

    def __init__(self, url: str, *, key: str = "") -> None:
        self._url = f"{url.rstrip('/')}/search"
        self._headers = {"Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    async def search(self, query: str, *, kind: SearchKind, limit: int) -> tuple[WebHit, ...]:
        """Return the server's results, the best first.

        :raises ToolError: when the server cannot be reached, takes longer than 25 seconds,
            refuses, or answers with an invalid value.
        """
        import httpx  # 0.1 s that only a search pays

        fields = {"q": query, "format": "json", "categories": _CATEGORIES[kind]}
        allowed, proxy = asyncio.timeout(SERVER_LIMIT_S), None
        try:
            proxy = pegboard.unstable.proxy_for(urlsplit(self._url), os.environ)
            secure = self._url.startswith("https:")
            tls = (
                await asyncio.to_thread(pegboard.unstable.tls_context, os.environ)
                if secure
                else False
            )
            async with (
                allowed,
                httpx.AsyncClient(
                    timeout=SERVER_LIMIT_S,
                    trust_env=False,
                    proxy=proxy.url if proxy else None,
                    verify=tls,
                ) as client,
            ):
                request = client.build_request(
                    "GET", self._url, params=fields, headers=self._headers
                )
                content = await _content(await client.send(request, stream=True))
        except TimeoutError as error:
            if not allowed.expired():
                raise
            raise ToolError(f"the search took longer than {SERVER_LIMIT_S:g} s") from error
        except (httpx.HTTPError, ValueError) as error:
            text = str(error) or type(error).__name__
            by = f" through the {proxy}" if proxy else ""
            raise ToolError(f"{self._url} cannot be asked{by}: {text}") from error
        try:
            found = msgspec.json.decode(content, type=_SearchAnswer).results
        except msgspec.DecodeError as error:
            raise ToolError(
                f"{self._url} did not answer with results in JSON; its settings must allow the"
                f" format json ({error})"
            ) from error
        return tuple(
            WebHit(url=each.url, title=each.title or "", text=each.content or "")
            for each in found[:limit]
        )


async def _content(response: "httpx.Response") -> bytes:
    try:
        if response.status_code in _FORBIDDEN:
            raise ToolError(
                f"the search server refused ({response.status_code}): it wants another"
                " plugins.websearch.options.key, or does not allow the format json"
            )
        if response.status_code != _OK:
            raise ToolError(f"the search server answered with status {response.status_code}")
        content = bytearray()
        async for piece in response.aiter_bytes(1 << 16):
            content += piece
            if len(content) > ANSWER_BYTES:
                raise ToolError(f"the search server sent more than {ANSWER_BYTES >> 20} MiB")
        return bytes(content)
    finally:
        await response.aclose()
