"""The example of a provider, against a server that speaks its protocol."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from docs.example_project import asked, project
from pegboard.schema.message import APIFailure, ContextOverflowFailure, ProviderAuthFailure
from pegboard.schema.part import Completed
from support.models.played import Played, ToolsPlugin, assistant, shout, texts, tools_of


class Lines:
    """A server that answers each request with the next of these; it keeps what it was asked."""

    def __init__(self, *answers: bytes) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        left = iter(answers)
        lines = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                lines.asked.append(json.loads(body))
                lines.keys.append(self.headers["authorization"])
                self.send_response(int(self.path.split("/")[1]))
                self.end_headers()
                self.wfile.write(next(left))

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.url = f"http://127.0.0.1:{self._server.server_port}/200"
        """Where it answers; another status in its place is the one that it answers with."""

    def __enter__(self) -> "Lines":
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def lines_config(url: str) -> dict[str, Any]:
    options = {"baseURL": url, "apiKey": "k"}
    return {
        "config": {
            "model": "lines/small",
            "provider": {"lines": {"options": options}},
            "retry": {"attempts": 1},
        }
    }


async def test_it_carries_texts_calls_and_results(tmp_path: Path) -> None:
    first_answer = (
        b'data: {"text": "I "}\n\ndata: {"text": "say."}\n\n'
        b'data: {"call": {"id": "c1", "name": "shout", "input": {"words": "two"}}}\n\n'
        b'data: {"end": {"input": 120, "output": 9}}\n\n'
    )
    last_answer = b'data: {"text": "Said."}\n\ndata: {"end": {"input": 1, "output": 1}}\n\n'

    with Lines(first_answer, last_answer) as server:
        plugins = (Played(), ToolsPlugin(shout))
        async with project(tmp_path, "provider", *plugins, **lines_config(server.url)) as app:
            _, first, second = await asked(app)

    [said] = tools_of((first,))
    assert isinstance(said.state, Completed)
    assert said.state.output == "TWO"
    assert (texts(first), texts(second)) == (["I say."], ["Said."])
    assert (assistant(first).tokens.input, assistant(first).tokens.output) == (120, 9)
    assert [each["model"] for each in server.asked] == ["small", "small"]
    assert [each["name"] for each in server.asked[0]["tools"]] == ["shout"]
    history = server.asked[1]["messages"]
    kinds = [[each["kind"] for each in message["content"]] for message in history]
    assert kinds == [["text"], ["text", "call"], ["result"]]
    assert history[-1]["content"][0]["output"] == "TWO"
    assert server.keys == ["Bearer k"] * 2


@pytest.mark.parametrize(
    ("status", "answer", "failure", "error"),
    [
        (200, b'data: {"text": "I say."}\n\n', APIFailure, "the answer broke off before its end"),
        (200, b'data: {"text": "I s', APIFailure, "the answer cannot be read"),
        (404, b"", APIFailure, "status 404 (404)', is_retryable=False"),
        (503, b"", APIFailure, "status 503 (503)', is_retryable=True"),
        (401, b"", ProviderAuthFailure, "set LINES_API_KEY"),
        (413, b"", ContextOverflowFailure, "status 413"),
    ],
)
async def test_an_answer_that_is_none_fails_the_turn(
    tmp_path: Path, status: int, answer: bytes, failure: type, error: str
) -> None:
    with Lines(answer) as server:
        options = lines_config(server.url.replace("/200", f"/{status}"))
        async with project(tmp_path, "provider", Played(), **options) as app:
            *_, last = await asked(app)

    assert isinstance(assistant(last).error, failure)
    assert error in str(assistant(last).error)


async def test_a_missing_key_is_named(tmp_path: Path) -> None:
    options = lines_config("http://127.0.0.1:9")
    del options["config"]["provider"]["lines"]["options"]["apiKey"]

    async with project(tmp_path, "provider", Played(), **options) as app:
        *_, last = await asked(app)

    assert "set LINES_API_KEY" in str(assistant(last).error)
