"""What a client is told of a revert, beside its answer."""

import json
from typing import Any


def test_what_going_back_leaves_is_an_event_and_a_notice(server, client):
    session = client.post("/session", json={}).json()["id"]
    body = {"parts": [{"type": "text", "text": "%write going.txt hello"}]}
    client.post(f"/session/{session}/message", json=body)
    (server.directory / "going.txt").write_text("mine")
    asked = client.get(f"/session/{session}/message").json()[0]["info"]["id"]

    with server.client() as other, other.stream("GET", "/event") as stream:
        frames = (line[6:] for line in stream.iter_lines() if line.startswith("data: "))
        next(frames)
        client.post(f"/session/{session}/revert", json={"messageID": asked})
        told: list[dict[str, Any]] = []
        while not told or told[-1]["type"] != "tui.toast.show":
            told.append(json.loads(next(frames)))

    warned = next(each for each in told if each["type"] == "session.warning")
    assert "going.txt: edited since" in warned["properties"]["message"]
    assert told[-1]["properties"]["message"] == warned["properties"]["message"]
    assert told[-1]["properties"]["variant"] == "warning"
