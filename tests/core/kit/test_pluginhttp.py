"""Plugins reach servers by types of our own, whose errors name the address and the status."""

import asyncio

import pytest

from pegboard.errors import ServerError, ServerUnreachableError
from pegboard.kit.pluginhttp import PluginHttp
from support.wire.web_server import page, redirect, serving


async def test_an_answer_is_read_whole() -> None:
    replies = {"/": redirect("/told"), "/told": page(b'{"a": 1}', "application/json")}
    async with serving(replies) as web:
        http = PluginHttp()
        answer = await http.request("GET", web.url(), headers={"x-from": "test"})
        await http.aclose()

    assert (answer.status, answer.json(), answer.text) == (200, {"a": 1}, '{"a": 1}')
    assert answer.headers["Content-Type"] == "application/json"
    assert web.requests[-1]["x-from"] == "test"


async def test_what_is_no_json_says_what_it_is() -> None:
    async with serving({"/": page(b"<p>no</p>")}) as web:
        http = PluginHttp()
        answer = await http.request("GET", web.url())
        await http.aclose()

    with pytest.raises(ServerError, match=r"did not answer with JSON: '<p>no</p>'"):
        answer.json()


async def test_a_status_that_means_a_failure_is_an_error_when_asked_for() -> None:
    async with serving({}) as web:
        http = PluginHttp()
        answer = await http.request("GET", web.url("/nowhere"))
        await http.aclose()

    with pytest.raises(ServerError, match="/nowhere answered 404") as caught:
        answer.raise_for_status()
    assert caught.value.status == 404


async def test_lines_come_as_they_are_sent() -> None:
    seen = asyncio.Event()

    async def slowly(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\none\n")
        await writer.drain()
        async with asyncio.timeout(60):
            await seen.wait()
        writer.write(b"two\n")
        await writer.drain()

    async with serving({"/": slowly}) as web:
        http = PluginHttp()
        lines = []
        async with http.stream("POST", web.url(), content=b"go") as answer:
            async for line in answer.lines():
                lines.append(line)
                seen.set()
        await http.aclose()

    assert lines == ["one", "two"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "no address at all"])
async def test_where_no_server_answers_the_error_is_of_ours(url: str) -> None:
    http = PluginHttp()
    with pytest.raises(ServerUnreachableError, match="no answer"):
        await http.request("GET", url, timeout_s=5)
    with pytest.raises(ServerUnreachableError, match="no answer"):
        async with http.stream("GET", url):
            pass
    await http.aclose()
    assert http.is_closed
