"""A text as it is streamed: deltas for who knows them, and the whole of it at its ends."""

import json
import time
from typing import Any

import httpx
import pytest

from support.wire.streams_heard import heard, prompt, until


@pytest.fixture
def session(client: httpx.Client) -> str:
    return str(client.post("/session").json()["id"])


def test_text_comes_as_deltas_and_the_full_text_comes_after_them(server, client, session):
    with heard(server, about=session) as events:
        client.post(f"/session/{session}/message", json=prompt("x;;%slow 5"))
        until(events, "session.idle")

    told = [
        event
        for event in events
        if event["type"] == "message.part.delta"
        or (
            event["type"] == "message.part.updated"
            and event["properties"]["part"]["type"] == "text"
        )
    ]
    assistant = [event for event in told if "delta" in json.dumps(event["type"])]
    text = "".join(event["properties"]["delta"] for event in assistant)
    assert text.split() == [f"chunk{at}" for at in range(5)]
    assert told[-1]["type"] == "message.part.updated"
    assert told[-1]["properties"]["part"]["text"].split() == text.split()


def test_a_text_that_comes_at_once_has_a_delta(server, client, session):
    with heard(server, about=session) as events:
        client.post(f"/session/{session}/message", json=prompt("x;;%say quick"))
        until(events, "session.idle")

    deltas = [event for event in events if event["type"] == "message.part.delta"]
    assert "".join(event["properties"]["delta"] for event in deltas) == "quick"


def wholes(events: list[dict[str, Any]]) -> list[str]:
    """The texts of the answer's parts, in the order in which they were told."""
    parts = [
        event["properties"]["part"] for event in events if event["type"] == "message.part.updated"
    ]
    return [part["text"] for part in parts if part["type"] == "text" and "time" in part]


def test_a_client_that_knows_deltas_hears_the_whole_text_at_its_end_alone(server, client, session):
    with (
        heard(server, "/global/event", about=session) as wrapped,
        heard(server, "/event?ids=true", about=session) as numbered,
        heard(server, about=session) as oldest,
    ):
        client.post(f"/session/{session}/message", json=prompt("x;;%slow 40"))
        for events in (numbered, oldest, wrapped):
            until(events, "session.idle")

    new = [event["payload"] for event in wrapped]
    first, *repeated, last = wholes(oldest)
    assert wholes(new) == wholes(numbered) == [first, last]
    assert first == ""
    assert repeated
    assert all(last.startswith(text.rstrip()) for text in repeated)
    assert sum(map(len, repeated)) < 2 * len(last)


def test_a_client_that_comes_later_reads_all_that_was_told_before(server, client, session):
    with heard(server, about=session) as events:
        client.post(f"/session/{session}/prompt_async", json=prompt("x;;%slow 60"))
        until(events, "message.part.delta")
        while sum(event["type"] == "message.part.delta" for event in events) < 10:
            time.sleep(0.02)
        before = "".join(e["properties"]["delta"] for e in events if "delta" in e["properties"])
        read = client.get(f"/session/{session}/message").json()[-1]
        one = client.get(f"/session/{session}/message/{read['info']['id']}").json()
        client.post(f"/session/{session}/abort")

    for turn in (read, one):
        [text] = [part["text"] for part in turn["parts"] if part["type"] == "text"]
        assert text.startswith(before)
