import asyncio
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pegboard import hookimpl
from pegboard.errors import InvalidInputError, PermissionDeniedError, ToolError
from pegboard.schema.config import Config, PluginConfig
from pegboard_plugins import websearch
from pegboard_plugins.websearch import (
    WebHit,
    register_tools,
)
from support.models.played import Played, calls, opened, text
from support.models.played import call as played_call
from support.plugins.hook_samples import Functions, Registered
from support.plugins.plugin_handles import handle
from support.tools.tool_context import Context, call
from support.wire.http_proxy import http_proxy
from support.wire.web_server import page, serving

RESULTS = [
    {"title": f"Title {number}", "url": f"https://a.test/{number}", "content": "some\n words"}
    for number in range(40)
]


def answer(results=RESULTS, kind="application/json"):
    return page(json.dumps({"query": "q", "results": results}).encode(), kind)


def configured(**options):
    return Config(plugins={"websearch": PluginConfig(options=options)})


async def tools(web, **options):
    return await tools_over(configured(url=web.url(""), **options))


async def tools_over(config, *backends):
    async with Registered(Functions(register_search_backends=lambda: backends)) as asked:
        return offered(await register_tools(config, asked.hooks, handle(websearch, config)))


def offered(tools):
    return {tool.id: tool for tool in tools}


HITS = (WebHit(url="https://a.test", text="a\nb"),)


class Known:
    """A third party's backend: it knows one page, and keeps what it was asked."""

    def __init__(self, name="known", answers=HITS):
        self.name = name
        self.answers = answers
        self.asked = []

    async def search(self, query, *, kind, limit):
        self.asked.append((query, kind, limit))
        return self.answers


class Installed:
    """A plugin that brings a backend."""

    def __init__(self, backend):
        self._backend = backend

    @hookimpl
    async def register_search_backends(self):
        return [self._backend]


def query_of(web):
    return parse_qs(urlsplit(web.requests[-1]["path"]).query)


class Replies(dict[str, Any]):
    """The same answer to every search."""

    def __init__(self, reply):
        self.reply = reply

    def get(self, path, default=None):
        return self.reply if path.startswith("/search?") else default


async def test_without_a_backend_there_are_no_tools():
    assert await tools_over(Config()) == {}


async def test_who_wants_tools_without_a_backend_is_told_what_is_missing():
    with pytest.raises(InvalidInputError, match=r"nothing searches the web.*options.url"):
        await tools_over(configured())
    with pytest.raises(InvalidInputError, match=r"no search backend 'other'.*registered: known"):
        await tools_over(configured(backend="other"), Known())
    with pytest.raises(InvalidInputError, match="not the http"):
        await tools_over(configured(url="searx"))


async def test_the_newest_backend_acts_unless_another_is_named(tmp_path):
    old, new = Known("old"), Known("new")

    for config in (Config(), configured(backend="old")):
        search = (await tools_over(config, old, new))["websearch"]
        await call(search, Context(tmp_path), query="words", numResults=99)

    assert old.asked == new.asked == [("words", "web", 30)]


@pytest.mark.parametrize("answers", [None, "text", [{"url": "https://a.test"}]])
async def test_a_backend_that_answers_with_nonsense_is_an_error(tmp_path, answers):
    search = (await tools_over(Config(), Known(answers=answers)))["codesearch"]

    with pytest.raises(ToolError, match="known answered with something else"):
        await call(search, Context(tmp_path), query="words")


@pytest.mark.fires("register_search_backends")
async def test_in_an_app_the_backend_of_another_plugin_searches(tmp_path):
    backend = Known()
    provider = Played(calls(played_call("websearch", '{"query": "words"}')), text("done"))

    async with opened(tmp_path, provider, websearch, Installed(backend)) as app:
        session = await app.create_session()
        await app.prompt(session.id, "look it up")
        turns = await app.list_turns(session.id)

    [state] = [
        part.state for turn in turns for part in turn.parts if getattr(part, "tool", "") != ""
    ]
    assert state.output == "https://a.test\na b"
    assert backend.asked == [("words", "web", 8)]


async def test_results_have_title_address_and_excerpt(tmp_path):
    context = Context(tmp_path)

    async with serving(Replies(answer())) as web:
        search = (await tools(web))["websearch"]
        result = await call(search, context, query="how to & why", numResults=2)

    assert result.output == (
        "Title 0\nhttps://a.test/0\nsome words\n\nTitle 1\nhttps://a.test/1\nsome words"
    )
    assert query_of(web) == {"q": ["how to & why"], "format": ["json"], "categories": ["general"]}
    assert context.asked("websearch") == ["how to & why"]


async def test_a_result_may_have_an_address_alone(tmp_path):
    bare = [{"url": "https://a.test", "title": None, "content": None}]

    async with serving(Replies(answer(bare))) as web:
        search = (await tools(web))["websearch"]
        result = await call(search, Context(tmp_path), query="pegs")

    assert result.output == "https://a.test"


async def test_code_is_searched_for_in_its_category_up_to_a_length(tmp_path):
    context = Context(tmp_path)

    async with serving(Replies(answer())) as web:
        search = (await tools(web))["codesearch"]
        result = await call(search, context, query="json", tokensNum=20)

    assert len(result.output) <= 20 * 4
    assert query_of(web)["categories"] == ["it"]
    assert context.asked("codesearch") == ["json"]


async def test_the_key_is_sent_as_a_bearer_token(tmp_path):
    async with serving(Replies(answer([]))) as web:
        search = (await tools(web, key="secret"))["websearch"]
        result = await call(search, Context(tmp_path), query="x")

    assert web.requests[0]["authorization"] == "bearer secret"
    assert result.output == "No search results found. Try another query."


async def silent(_writer):
    await asyncio.sleep(30)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (page(b"<html>", "text/html"), "must allow the format json"),
        (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", r"refused \(403\)"),
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", "status 500"),
        (page(b"0" * (5 << 20)), "more than 4 MiB"),
        (b"", "cannot be asked"),
        (silent, r"longer than 0\.3 s"),
    ],
)
async def test_a_server_that_fails_is_an_error(tmp_path, monkeypatch, reply, reason):
    monkeypatch.setattr(websearch, "SERVER_LIMIT_S", 0.3 if reply is silent else 20.0)

    async with serving(Replies(reply)) as web:
        search = (await tools(web))["websearch"]
        with pytest.raises(ToolError, match=reason):
            await call(search, Context(tmp_path), query="x")


async def test_without_the_permission_nothing_is_sent(tmp_path):
    async with serving(Replies(answer())) as web:
        search = (await tools(web))["websearch"]
        with pytest.raises(PermissionDeniedError):
            await call(search, Context(tmp_path, denied=["websearch"]), query="x")

    assert web.requests == []


async def test_a_search_goes_through_the_proxy_of_the_environment(tmp_path, monkeypatch):
    answer = page(json.dumps({"results": [{"url": "https://a.test/"}]}).encode())
    path = "/search?q=pegs&format=json&categories=general"
    async with serving({path: answer}) as web, http_proxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        found = await websearch.SearXNG(web.url("", host="search.example")).search(
            "pegs", kind="web", limit=3
        )
        own = await websearch.SearXNG(web.url("")).search("pegs", kind="web", limit=3)

    assert [hit.url for hit in (*found, *own)] == ["https://a.test/", "https://a.test/"]
    assert len([line for line in proxy.requests if line.startswith("GET")]) == 1
