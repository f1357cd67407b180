"""The conversion of a fetched page to the tool's result: text in a format, or an attachment."""

import asyncio
import base64
import codecs
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pegboard import Attachment, ToolContext, ToolError, ToolResult
from pegboard_plugins.webfetch.fetching import LIMIT_BYTES, Page

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


async def page_result(context: ToolContext, page: Page, format: str) -> ToolResult:  # noqa: A002 - the protocol's name
    """Return the page in the wanted format, or as an attachment if it is an image or a PDF."""
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


def _attached(page: Page, title: str) -> ToolResult:
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


def _is_html(page: Page) -> bool:
    """Return whether the page is HTML by its MIME type, or lacking a type, by its first bytes."""
    return page.mime in _HTML or (not page.mime and re.match(_LIKE_HTML, page.content) is not None)


def _charset(page: Page) -> str:
    """Return the encoding of a page, by WHATWG's order.

    The order is the byte order mark, the header, the page's `meta` element, and the content.
    """
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
    """Return Python's name of a text encoding, or "" if Python does not know the encoding."""
    try:
        found = codecs.lookup(name).name
        "".encode(found)  # refuses `hex`, `zip` and others that make no text
    except (LookupError, ValueError):
        return ""
    if found in _NO_CHARSETS:
        return ""
    # Pages that say Latin-1 mean Windows' superset of it (WHATWG Encoding 4.2).
    return "cp1252" if found in ("iso8859-1", "ascii") else found


async def _converted(context: ToolContext, page: Page, format: str, charset: str) -> str:  # noqa: A002 - as above
    """Convert the page in another process, which has limits of time and memory."""
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
