"""What the model gets of a page."""

import pytest

from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.schema.config import Config, PluginConfig
from pegboard_plugins import webfetch as webfetch_plugin
from pegboard_plugins.webfetch import register_tools, webfetch_tool
from pegboard_plugins.webfetch.fetching import LIMIT_BYTES, Fetcher
from support.plugins.plugin_handles import handle
from support.tools.tool_context import Context, call
from support.wire.web_server import page, redirect, serving

ARTICLE = b"""<!doctype html><html><head><title>Pegs</title><style>p {}</style></head><body>
<script>alert(1)</script><noscript>no</noscript>
<h2>How to &amp; why</h2><p>A <b>peg</b> and a <a href="../board">board</a>.</p>
<ul><li>one</li><li>two</li></ul><pre><code>x = 1
y = 2</code></pre><iframe src="x">frame</iframe></body></html>"""


@pytest.fixture
def context(tmp_path):
    return Context(tmp_path)


@pytest.fixture
def webfetch():
    return webfetch_tool(lambda: Fetcher(allowed=lambda _: True))


async def test_a_page_becomes_markdown(context, webfetch):
    async with serving({"/a/b": page(ARTICLE)}) as web:
        result = await call(webfetch, context, url=web.url("/a/b#top"))

    assert result.output == (
        f"# Pegs\n\n## How to & why\n\nA **peg** and a [board]({web.url('/board')}).\n\n"
        "- one\n- two\n\n```\nx = 1\ny = 2\n```"
    )
    assert result.title == f"{web.url('/a/b')} (text/html)"
    assert context.asked("webfetch") == [web.url("/a/b")]
    assert context.asks[0].always == (web.url("/*"),)


async def test_a_page_becomes_text(context, webfetch):
    async with serving({"/": page(ARTICLE)}) as web:
        result = await call(webfetch, context, url=web.url(), format="text")

    assert result.output == ("How to & why\n\nA peg and a board.\n\none\n\ntwo\n\nx = 1\ny = 2")


@pytest.mark.parametrize("wanted", ["markdown", "text"])
async def test_a_page_that_leaves_out_ends_as_html_allows_is_read(context, webfetch, wanted):
    short = b"<!doctype html><html><head><title>T</title><meta charset=utf-8><body><p>one<p>two"

    async with serving({"/": page(short)}) as web:
        result = await call(webfetch, context, url=web.url(), format=wanted)

    assert result.output == ("# T\n\none\n\ntwo" if wanted == "markdown" else "one\ntwo")


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ("text", "a b\nif x:\n    y\n\nc d"),
        ("markdown", "a b\n\n```py\nif x:\n    y\n```\n\n| c | d |\n| --- | --- |"),
    ],
)
async def test_code_and_tables_keep_their_form(context, webfetch, wanted, shown):
    code = b'<p>a  b<pre><code class="language-py">if x:\n    y\n</code></pre>'
    table = b"<table><tr><th>c</th><th>d</th></tr></table>"

    async with serving({"/": page(code + table)}) as web:
        result = await call(webfetch, context, url=web.url(), format=wanted)

    assert result.output == shown


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<base href=/docs/><a href=x>x</a>", "[x]({site}/docs/x)"),
        ("<p>a <img src='data:image/png;base64,AAAA' alt=pic> b", "a pic b"),
        ("<table><tr><th>1|2</th></tr></table><p>3|4<!--|-->", "| 1\\|2 |\n| --- |\n\n3|4"),
        ("<pre>a\r\n\n\n\n  b  \nc</pre>", "```\na\n\n\n\n  b  \nc\n```"),
    ],
)
async def test_what_markdown_would_lose_is_kept(context, webfetch, html, shown):
    async with serving({"/a/b": page(html.encode())}) as web:
        result = await call(webfetch, context, url=web.url("/a/b"))

        assert result.output == shown.replace("{site}", web.url("").rstrip("/"))


async def test_a_page_without_a_type_is_known_by_its_beginning(context, webfetch):
    content = b"\n<!DOCTYPE HTML><title>T</title><p>one"
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(content)}\r\n\r\n".encode()

    async with serving({"/": head + content}) as web:
        result = await call(webfetch, context, url=web.url())

    assert result.output == "# T\n\none"


async def test_html_is_given_as_it_is(context, webfetch):
    async with serving({"/": page(ARTICLE)}) as web:
        result = await call(webfetch, context, url=web.url(), format="html")

    assert result.output == ARTICLE.decode()


@pytest.mark.parametrize("wanted", ["markdown", "text"])
async def test_a_page_that_is_nested_without_end_is_given_as_text(context, webfetch, wanted):
    deep = b"<div>" * 50_000 + b"bottom" + b"</div>" * 50_000

    async with serving({"/": page(deep)}) as web:
        result = await call(webfetch, context, url=web.url(), format=wanted)

    assert result.output == "bottom"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("grüße".encode("latin-1"), "text/plain; charset=ISO-8859-1"),
        ("grüße".encode("latin-1"), "text/plain"),
        ("grüße".encode(), "text/plain; charset=no-such"),
        ("grüße".encode(), "text/plain; charset=base64"),
        ("grüße".encode(), "text/html; charset=idna"),
        ("grüße".encode(), "text/plain; charset=punycode"),
        ("grüße".encode("utf-16"), "text/plain; charset=utf-8"),
        (b"\xef\xbb\xbf" + "grüße".encode(), "application/json"),
        ("grüße".encode("shift_jis", "ignore").replace(b"gre", "grüße".encode()), "text/plain"),
        (b'<meta charset="windows-1252"><p>' + "grüße".encode("cp1252"), "text/html"),
        (
            b'<meta http-equiv=x content="text/html; charset=koi8-r"><p>gr\xfc\xdfe',
            "text/html; charset=cp1252",
        ),
    ],
)
async def test_the_encoding_is_found(context, webfetch, content, kind):
    async with serving({"/": page(content, kind)}) as web:
        result = await call(webfetch, context, url=web.url())

    assert result.output == "grüße"


async def test_a_picture_is_attached(context, webfetch):
    async with serving({"/a/peg.png?x=1": page(b"\x89PNG", "image/png")}) as web:
        result = await call(webfetch, context, url=web.url("/a/peg.png?x=1"))

    (picture,) = result.attachments
    assert (picture.mime, picture.filename) == ("image/png", "peg.png")
    assert picture.url == "data:image/png;base64,iVBORw=="


@pytest.mark.parametrize("kind", ["image/png", "image/webp", "application/pdf"])
@pytest.mark.parametrize("content", [b"", b"<html>Log in first</html>"])
async def test_what_is_no_picture_is_not_attached_as_one(context, webfetch, kind, content):
    async with serving({"/": page(content, kind)}) as web:
        with pytest.raises(ToolError, match=f"is said to be {kind}"):
            await call(webfetch, context, url=web.url())


@pytest.mark.parametrize("kind", ["application/zip", "video/mp4", "application/octet-stream"])
async def test_what_is_no_text_is_an_error(context, webfetch, kind):
    async with serving({"/": page(b"PK\x03\x04", kind)}) as web:
        with pytest.raises(ToolError, match=f"is {kind}, which cannot be read as text"):
            await call(webfetch, context, url=web.url())


async def test_a_cut_page_says_so(context, webfetch):
    async with serving({"/": page(b"x" * (LIMIT_BYTES + 1), "text/plain")}) as web:
        result = await call(webfetch, context, url=web.url())

    assert result.output.endswith("(The page is longer than 5 MiB; the rest was not read)")


async def test_each_hop_needs_the_permission(tmp_path, webfetch):
    context = Context(tmp_path)
    replies = {"/": redirect("/there"), "/there": page(b"hi", "text/plain")}

    async with serving(replies) as web:
        await call(webfetch, context, url=web.url())

    assert context.asked("webfetch") == [web.url("/"), web.url("/there")]


async def test_a_host_is_asked_for_by_one_name(context, webfetch):
    async with serving({"/": page(b"x", "text/plain")}) as web:
        await call(webfetch, context, url=web.url(host="LOCALHOST.").replace("http", "HTTP"))

        assert context.asked("webfetch") == [web.url(host="localhost")]


async def test_without_the_permission_nothing_is_sent(tmp_path, webfetch):
    async with serving({"/": page(b"hi")}) as web:
        with pytest.raises(PermissionDeniedError):
            await call(webfetch, Context(tmp_path, denied=["webfetch"]), url=web.url())

    assert web.connections == 0


@pytest.mark.parametrize("allowed", [True, False])
async def test_the_configuration_allows_private_addresses(context, allowed):
    options = PluginConfig(options={"allow_private": True} if allowed else {})
    plugin = handle(webfetch_plugin, Config(plugins={"webfetch": options}))
    (webfetch,) = await register_tools(plugin)

    async with serving({"/": page(b"hi", "text/plain")}) as web:
        if allowed:
            assert (await call(webfetch, context, url=web.url())).output == "hi"
        else:
            with pytest.raises(ToolError, match=r"plugins\.webfetch\.options\.allow_private"):
                await call(webfetch, context, url=web.url())
