"""What terminal interfaces are told to do."""

import json
from typing import Any

import httpx
import pytest

from served import Served

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
