"""What terminal interfaces are told to do."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.wire.served import Served, served

TOAST = {"message": "m", "variant": "info"}


def told(server: Served, client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    with server.client() as other, other.stream("GET", "/event") as stream:
        frames = (line[6:] for line in stream.iter_lines() if line.startswith("data: "))
        next(frames)
        assert client.post(path, json=body).json() is True
        shown = (json.loads(frame) for frame in frames)
        return dict(next(event for event in shown if event["type"].startswith("tui.")))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tui/show-toast", TOAST),
        ("/tui/publish", {"type": "tui.toast.show", "properties": TOAST}),
    ],
)
def test_a_notice_is_shown_for_a_while_when_it_says_nothing(server, client, path, body):
    event = told(server, client, path, body)

    assert event["properties"] == {**TOAST, "duration": 5000}


@pytest.mark.parametrize(
    "wrong",
    [{"variant": "loud"}, {"title": 7}, {"duration": "long"}, {"duration": -1}, {"duration": True}],
)
def test_a_notice_that_no_interface_knows_is_refused(client, wrong):
    answer = client.post("/tui/show-toast", json={**TOAST, **wrong})

    assert answer.status_code == 400
    assert next(iter(wrong)) in answer.json()["data"]["message"]


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """A directory of its own, whose orders no other test gets."""
    return {"x-opencode-directory": str(tmp_path)}


def test_an_order_is_given_to_a_client_that_waits_for_it(server, client, place):
    with ThreadPoolExecutor() as pool, server.client(headers=place) as other:
        waiting = pool.submit(other.get, "/tui/control/next")
        while not waiting.done():  # until the request has come in, no order waits for it
            client.post("/tui/append-prompt", headers=place, json={"text": "abc"})
        order = waiting.result()

    assert order.json() == {"path": "/tui/append-prompt", "body": {"text": "abc"}}


def test_orders_wait_for_a_client_that_has_asked_before(server, client, place):
    with server.client(headers=place) as other, pytest.raises(httpx.ReadTimeout):
        other.get("/tui/control/next", timeout=httpx.Timeout(60, read=0.5))
    event = {"type": "tui.prompt.append", "properties": {"text": "a"}}

    client.post("/tui/publish", headers=place, json=event)
    client.post("/tui/open-help", headers=place)
    orders = [client.get("/tui/control/next", headers=place).json() for _ in range(2)]
    answered = client.post("/tui/control/response", headers=place, json={"any": 1})

    assert orders == [
        {"path": "/tui/publish", "body": event},
        {"path": "/tui/open-help", "body": {}},
    ]
    assert answered.json() is True


def test_a_client_that_leaves_takes_no_order(server, client, place):
    for _ in range(3):
        with server.client(headers=place) as other, pytest.raises(httpx.ReadTimeout):
            other.get("/tui/control/next", timeout=httpx.Timeout(60, read=0.5))

    client.post("/tui/clear-prompt", headers=place)

    order = client.get("/tui/control/next", headers=place).json()
    assert order == {"path": "/tui/clear-prompt", "body": {}}


def test_a_client_that_waits_for_an_order_does_not_hold_up_the_end(model_port, tmp_path):
    with served(tmp_path, model_port) as own, own.client() as client:
        host, _, port = own.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as waiting:
            lines = ("GET /tui/control/next HTTP/1.1", f"host: {host}:{port}")
            token = f"authorization: Bearer {own.token}"
            waiting.sendall("\r\n".join((*lines, token, "", "")).encode())
            client.get("/global/health")  # it came later, so that the other one is read
            own.process.terminate()

            assert waiting.recv(100).startswith(b"HTTP/1.1 503 ")
