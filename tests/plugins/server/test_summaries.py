"""What a user message says of its turn, as clients read it."""

import json
from typing import Any

import httpx

from support.wire.served import Served


def test_each_user_message_has_the_changes_of_its_own_turn(
    server: Served, client: httpx.Client
) -> None:
    session = client.post("/session", json={"title": "changes"}).json()["id"]
    with server.client() as other, other.stream("GET", "/event") as stream:
        frames = (line[6:] for line in stream.iter_lines() if line.startswith("data: "))
        next(frames)
        for text in ("%write one.txt a\n", "%say hi", "%write two.txt b\n"):
            prompt = {"parts": [{"type": "text", "text": text}]}
            client.post(f"/session/{session}/message", json=prompt)
        told: list[Any] = []
        while len(told) < 3:
            event = json.loads(next(frames))
            if event["type"] == "session.diff" and event["properties"]["sessionID"] == session:
                told.append(sorted(each["file"] for each in event["properties"]["diff"]))

    turns = client.get(f"/session/{session}/message").json()
    first, second, third = (
        turn["info"]["summary"] for turn in turns if turn["info"]["role"] == "user"
    )
    [change] = first["diffs"]
    assert {**change, "patch": ""} == {
        "file": "one.txt",
        "patch": "",
        "additions": 1,
        "deletions": 0,
        "status": "added",
    }
    assert change["patch"].startswith("--- one.txt\n+++ one.txt\n@@ -0,0 +1 @@\n+a\n")
    assert first["title"] == "%write one.txt a"
    assert second["diffs"] == []
    assert [each["file"] for each in third["diffs"]] == ["two.txt"]
    assert told == [["one.txt"], ["one.txt"], ["one.txt", "two.txt"]]
