"""The webfetch tool: it fetches a web page as Markdown, text or HTML."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from pegboard import (
    PermissionContext,
    Plugin,
    Tool,
    ToolContext,
    ToolResult,
    hookimpl,
    tool,
)
from pegboard.schema.part import Completed, ToolPart

if TYPE_CHECKING:
    from pegboard.display import Block
    from pegboard_plugins.webfetch.fetching import Fetcher

Format = Literal["markdown", "text", "html"]

DEFAULT_S = 30
LONGEST_S = 120
_ACCEPTED: dict[Format, str] = {
    "markdown": "text/markdown;q=1.0, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1",
    "text": "text/plain;q=1.0, text/markdown;q=0.9, text/html;q=0.8, */*;q=0.1",
    "html": "text/html;q=1.0, application/xhtml+xml;q=0.9, */*;q=0.1",
}


async def _may_fetch(context: PermissionContext, url: str) -> None:
    """Require permission for the URL in canonical form, the form in which it is fetched."""
    from pegboard_plugins.webfetch.fetching import parsed_url  # not before a page is fetched

    url = str(parsed_url(url))
    await context.require("webfetch", [url], always=[_site(url)], metadata={"url": url})


def _drawn(part: ToolPart) -> "Block | None":
    """Return the fetched page for display, collapsed, or None before the call completes."""
    if not isinstance(part.state, Completed):
        return None
    import pegboard.unstable  # not before a call is drawn
    from pegboard.display import Block

    title = pegboard.unstable.subject_of(part.state.input)
    return Block(title=title, markdown=part.state.output, fold=0)


def webfetch_tool(fetcher: "Callable[[], Fetcher]") -> Tool:
    """Make the webfetch tool; each call creates its own fetcher with `fetcher`."""

    @tool(requires=_may_fetch, effect="reads", draw=_drawn)
    async def webfetch(
        context: ToolContext,
        url: str,
        format: Format = "markdown",  # noqa: A002 - the protocol's name
        timeout: int = DEFAULT_S,  # noqa: ASYNC109 - likewise
    ) -> ToolResult:
        """Fetch a web page whose address was given or found.

        Images and PDFs are attached. Servers of this machine and network are refused: use curl
        in bash.

        Args:
            url: http:// or https://.
            timeout: seconds, at most 120.
        """

        async def agree(hop: str) -> None:
            await _may_fetch(context, hop)  # so that an allowed host leads to no other

        from pegboard_plugins.webfetch.fetching import Wish
        from pegboard_plugins.webfetch.pageresult import page_result

        wish = Wish(
            url=url,
            accept=_ACCEPTED[format],
            timeout_s=min(max(timeout, 1), LONGEST_S),
            agree=agree,
        )
        return await page_result(context, await fetcher().fetch(wish), format)

    return webfetch


def _site(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].partition('?')[0]}/*"


class WebFetchOptions(msgspec.Struct, frozen=True):
    """The options of the plugin.

    `allow_private` permits pages of this machine and its network. `proxy` is the URL of an HTTP
    proxy for all pages; by default the environment names the proxy.
    """

    allow_private: bool = False
    proxy: str = ""


options = WebFetchOptions
"""What `plugins.webfetch.options` can say."""


@hookimpl
async def register_tools(plugin: Plugin) -> list[Tool]:
    """Return the webfetch tool with the options in `plugins.webfetch.options`."""

    def fetcher() -> "Fetcher":
        from pegboard.unstable import is_public_address
        from pegboard_plugins.webfetch.fetching import Fetcher  # not before a page is fetched

        options = plugin.options
        allowed = (lambda _: True) if options.allow_private else is_public_address
        return Fetcher(allowed=allowed, environ=os.environ, proxy=options.proxy)

    return [webfetch_tool(fetcher)]
