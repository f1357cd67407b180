"""The webfetch tool: a page of the web as Markdown, text or HTML."""

import asyncio
import base64
import codecs
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from pegboard import (
    Attachment,
    PermissionContext,
    Plugin,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    hookimpl,
    tool,
)
from pegboard.schema.part import Completed, ToolPart

if TYPE_CHECKING:
    from pegboard.display import Block
    from pegboard_plugins.webfetch.fetching import Fetcher, Page

Format = Literal["markdown", "text", "html"]

DEFAULT_S = 30
LIMIT_BYTES = 5 << 20
"""The longest content, decoded; what comes after it is not read (opencode `tool/webfetch.ts`)."""
LONGEST_S = 120
CONVERSION_S = 30.0
"""How long the conversion of a page may take, in a process of its own."""
_PROBE_BYTES = 1024
"""Where a page has to say its encoding (WHATWG HTML 4.2.5.4)."""
_DECLARED = rb"(?i)<meta[^>]{0,200}charset\s*=\s*[\"']?([A-Za-z0-9_:.-]{1,40})"
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_NO_CHARSETS = frozenset(
    ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7")
)
"""Python's encodings of other things than pages (WHATWG Encoding 4.2 has none of them)."""
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_LIKE_HTML = rb"(?i)\s*<(!doctype html|html|head|body)\b"
_SHOWN = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
    "application/pdf": b"%PDF",
}
"""What is attached, and how it begins: a provider refuses a request with anything else."""
_TEXTUAL = (
    r"text/.*|.*[+/](json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-sh|sql|graphql|csv)"
    r"|application/(x-ndjson|jsonl|x-javascript|x-www-form-urlencoded)"
)
_ACCEPTED: dict[Format, str] = {
    "markdown": "text/markdown;q=1.0, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1",
    "text": "text/plain;q=1.0, text/markdown;q=0.9, text/html;q=0.8, */*;q=0.1",
    "html": "text/html;q=1.0, application/xhtml+xml;q=0.9, */*;q=0.1",
}


async def _may_fetch(context: PermissionContext, url: str) -> None:
    """Require the URL as it is fetched, whatever its spelling."""
    from pegboard_plugins.webfetch.fetching import parsed_url  # not before a page is fetched

    url = str(parsed_url(url))
    await context.require("webfetch", [url], always=[_site(url)], metadata={"url": url})


def _drawn(part: ToolPart) -> "Block | None":
    """Return the page, folded."""
    if not isinstance(part.state, Completed):
        return None
    import pegboard.unstable  # not before a call is drawn
    from pegboard.display import Block

    title = pegboard.unstable.subject_of(part.state.input)
    return Block(title=title, markdown=part.state.output, fold=0)


def webfetch_tool(fetcher: "Callable[[], Fetcher]") -> Tool:
    """Make the tool with a fetcher, which each call makes."""

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

        wish = Wish(
            url=url,
            accept=_ACCEPTED[format],
            timeout_s=min(max(timeout, 1), LONGEST_S),
            agree=agree,
        )
        return await _result(context, await fetcher().fetch(wish), format)

    return webfetch


def _site(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].partition('?')[0]}/*"


async def _result(context: ToolContext, page: "Page", format: Format) -> ToolResult:  # noqa: A002 - as above
    title = f"{page.url} ({page.mime or 'unknown type'})"
    if page.mime in _SHOWN:
        return _attached(page, title)
    if page.mime and not re.fullmatch(_TEXTUAL, page.mime):
        raise ToolError(f"{page.url} is {page.mime}, which cannot be read as text")
    charset = _charset(page)
    if _is_html(page) and format != "html":
        output = await _converted(context, page, format, charset)
    else:
        output = page.content.decode(charset, "replace")
    if not page.mime and "\0" in output[:_PROBE_BYTES]:
        raise ToolError(f"{page.url} is binary, which cannot be read as text")
    if page.cut:
        output += f"\n\n(The page is longer than {LIMIT_BYTES >> 20} MiB; the rest was not read)"
    return ToolResult(output=output or "(The page is empty)", title=title)


def _attached(page: "Page", title: str) -> ToolResult:
    if page.cut:
        raise ToolError(f"{page.url} is larger than {LIMIT_BYTES >> 20} MiB")
    if not page.content.startswith(_SHOWN[page.mime]):
        raise ToolError(f"{page.url} is said to be {page.mime}, which its content is not")
    url = f"data:{page.mime};base64,{base64.b64encode(page.content).decode()}"
    name = Path(page.url.partition("?")[0]).name or None
    return ToolResult(
        output=f"Fetched {page.url}: it is attached.",
        title=title,
        attachments=(Attachment(mime=page.mime, url=url, filename=name),),
    )


def _is_html(page: "Page") -> bool:
    """Return whether it is, by its type, or by its beginning where it has none."""
    return page.mime in _HTML or (not page.mime and re.match(_LIKE_HTML, page.content) is not None)


def _charset(page: "Page") -> str:
    """Return the encoding by byte order mark, header, the page itself, and content (WHATWG)."""
    for bom, charset in _BOMS.items():
        if page.content.startswith(bom):
            return charset
    declared = re.search(_DECLARED, page.content[:_PROBE_BYTES]) if _is_html(page) else None
    for name in (page.charset, declared[1].decode("ascii") if declared else ""):
        if charset := _known(name):
            return charset
    try:
        # The end may be half a letter, where the page was cut.
        codecs.getincrementaldecoder("utf-8")().decode(page.content, final=not page.cut)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _known(name: str) -> str:
    """Python's name of a text encoding, "" for one that it does not have."""
    try:
        found = codecs.lookup(name).name
        "".encode(found)  # refuses `hex`, `zip` and others that make no text
    except (LookupError, ValueError):
        return ""
    if found in _NO_CHARSETS:
        return ""
    # Pages that say Latin-1 mean Windows' superset of it (WHATWG Encoding 4.2).
    return "cp1252" if found in ("iso8859-1", "ascii") else found


async def _converted(context: ToolContext, page: "Page", format: Format, charset: str) -> str:  # noqa: A002 - as above
    """Convert the page in a process of its own, with limits of time and memory."""
    from tempfile import TemporaryDirectory  # 1 ms, for a page

    program = str(Path(__file__).with_name("reading.py"))
    folder = await asyncio.to_thread(TemporaryDirectory, prefix="pegboard-page-")
    try:
        file = Path(folder.name, "page")
        await asyncio.to_thread(file.write_bytes, page.content)
        done = await context.run(
            [sys.executable, "-I", program, str(file), format, charset, page.url],
            timeout_s=CONVERSION_S,
            limit_bytes=2 * LIMIT_BYTES,
            reads=[Path(folder.name), Path(program)],
        )
    finally:
        await asyncio.to_thread(folder.cleanup)
    if done.exit_code != 0:
        why = "took too long" if done.timed_out else "failed"
        raise ToolError(f"the conversion of {page.url} {why}; ask for the format html")
    return done.output


class WebFetchOptions(msgspec.Struct, frozen=True):
    """`allow_private`: pages of this machine and its network can be fetched, too.

    `proxy` is the URL of an HTTP proxy for all pages; without it the environment names one.
    """

    allow_private: bool = False
    proxy: str = ""


options = WebFetchOptions
"""What `plugins.webfetch.options` can say."""


@hookimpl
async def register_tools(plugin: Plugin) -> list[Tool]:
    """Register the webfetch tool with `plugins.webfetch.options`."""

    def fetcher() -> "Fetcher":
        from pegboard.unstable import is_public_address
        from pegboard_plugins.webfetch.fetching import Fetcher  # not before a page is fetched

        options = plugin.options
        allowed = (lambda _: True) if options.allow_private else is_public_address
        return Fetcher(allowed=allowed, environ=os.environ, proxy=options.proxy)

    return [webfetch_tool(fetcher)]
