"""Prompts over HTTP: what is answered, what is told, and what survives a client that leaves."""

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import httpx
import pytest

from pegboard.ids import IdSource
from pegboard_plugins.sqlite.storage import SqliteStorage
from support.wire.served import served
from support.wire.streams_heard import heard, prompt, until


@pytest.fixture
def session(client: httpx.Client) -> str:
    return str(client.post("/session").json()["id"])


def test_a_prompt_is_answered_with_the_last_message(client, session):
    answer = client.post(f"/session/{session}/message", json=prompt("hello;;%say PONG")).json()

    assert [part["text"] for part in answer["parts"] if part["type"] == "text"] == ["PONG"]
    assert answer["info"]["finish"] == "stop"
    assert answer["info"]["id"] > answer["info"]["parentID"]


def test_events_come_in_the_order_that_clients_rely_on(server, client, session):
    with heard(server, about=session) as events:
        client.post(f"/session/{session}/message", json=prompt("x;;%bash echo free-1"))
        until(events, "session.idle")

    kinds = [
        event["properties"].get("info", {}).get("role")
        if event["type"] == "message.updated"
        else event["type"]
        for event in events
    ]
    assert kinds[0] == "server.connected"
    assert kinds.index("user") < kinds.index("session.status") < kinds.index("assistant")
    tools = [
        event["properties"]["part"]["state"]["status"]
        for event in events
        if event["type"] == "message.part.updated" and event["properties"]["part"]["type"] == "tool"
    ]
    assert list(dict.fromkeys(tools)) == ["pending", "running", "completed"]
    assert all(event["id"].startswith("evt_") for event in events)


def test_an_asynchronous_prompt_is_stored_when_it_is_acknowledged(client, session):
    answer = client.post(f"/session/{session}/prompt_async", json=prompt("x;;%slow 100"))

    assert (answer.status_code, answer.content) == (204, b"")
    stored = client.get(f"/session/{session}/message").json()
    assert stored[0]["parts"][0]["text"] == "x;;%slow 100"
    assert client.get("/session/status").json()[session] == {"type": "busy"}
    assert client.post(f"/session/{session}/abort").json() is True
    assert session not in client.get("/session/status").json()


def test_a_turn_goes_on_when_its_client_leaves(server, client, session):
    place = server.url.removeprefix("http://")
    body, headers = json.dumps(prompt("x;;%slow 30")), {"content-type": "application/json"}
    with heard(server, about=session) as events:
        with closing(HTTPConnection(place)) as impatient:
            path = f"/session/{session}/message"
            impatient.request("POST", path, body, {**server.headers, **headers})
            until(events, "message.part.delta")
        until(events, "session.idle")
    last = client.get(f"/session/{session}/message").json()[-1]
    assert last["info"]["finish"] == "stop"


def test_an_abort_is_told_in_the_answer(server, client, session):
    answers: list[Any] = []

    def ask() -> None:
        answers.append(client.post(f"/session/{session}/message", json=prompt("x;;%slow 50")))

    with heard(server, about=session) as events:
        asking = threading.Thread(target=ask)
        asking.start()
        until(events, "message.part.delta")
        with server.client() as other:
            assert other.post(f"/session/{session}/abort").json() is True
        asking.join()

    assert answers[0].status_code == 200
    assert answers[0].json()["info"]["error"]["name"] == "MessageAbortedError"


def test_a_permission_waits_for_its_answer(server, client, session):
    with heard(server, about=session) as events:
        client.post(f"/session/{session}/prompt_async", json=prompt("x;;%bash echo asked"))
        asked = until(events, "permission.asked")["properties"]
        listed = client.get("/permission").json()
        replied = client.post(f"/permission/{asked['id']}/reply", json={"reply": "once"})
        until(events, "session.idle")

    assert [request["id"] for request in listed] == [asked["id"]]
    assert (asked["permission"], replied.json()) == ("bash", True)
    last = client.get(f"/session/{session}/message").json()[-1]
    assert "All done after 1" in last["parts"][1]["text"]


def test_a_question_is_answered_with_labels(server, client, session):
    with heard(server, about=session) as events:
        asked = "x;;%question Color?|Red|Blue"
        client.post(f"/session/{session}/prompt_async", json=prompt(asked))
        request = until(events, "question.asked")["properties"]
        answer = client.post(f"/question/{request['id']}/reply", json={"answers": [["Blue"]]})
        until(events, "session.idle")

    assert answer.json() is True
    assert client.get("/question").json() == []


def test_a_request_is_answered_in_its_own_project_only(server, client, session, tmp_path):
    strange = client.post("/session", params={"directory": str(tmp_path)}).json()["id"]
    elsewhere = {"directory": str(tmp_path)}
    said = {"reply": "once"}
    with heard(server, about=session) as events:
        client.post(f"/session/{session}/prompt_async", json=prompt("x;;%bash touch ran"))
        asked = until(events, "permission.asked")["properties"]["id"]
        other = client.post("/session").json()["id"]
        refused = [
            client.post(f"/permission/{asked}/reply", params=elsewhere, json=said),
            client.post(f"/session/{other}/permissions/{asked}", json={"response": "once"}),
            client.post(
                f"/session/{strange}/permissions/{asked}",
                params=elsewhere,
                json={"response": "once"},
            ),
        ]
        waiting = [each["id"] for each in client.get("/permission").json()]
        client.post(f"/session/{session}/permissions/{asked}", json={"response": "reject"})
        until(events, "session.idle")

    assert [each.status_code for each in refused] == [404] * 3
    assert waiting == [asked]
    assert not (server.directory / "ran").exists()


def test_a_question_is_answered_in_its_own_project_only(server, client, session, tmp_path):
    elsewhere = {"directory": str(tmp_path)}
    with heard(server, about=session) as events:
        client.post(f"/session/{session}/prompt_async", json=prompt("x;;%question Color?|Red|Blue"))
        asked = until(events, "question.asked")["properties"]["id"]
        answered = client.post(
            f"/question/{asked}/reply", params=elsewhere, json={"answers": [["Red"]]}
        )
        rejected = client.post(f"/question/{asked}/reject", params=elsewhere)
        waiting = [each["id"] for each in client.get("/question").json()]
        client.post(f"/question/{asked}/reject")
        until(events, "session.idle")

    assert (answered.status_code, rejected.status_code) == (404, 404)
    assert waiting == [asked]


def test_a_failing_model_is_told_in_the_answer(client, session):
    answer = client.post(f"/session/{session}/message", json=prompt("x;;%err 400"))

    assert answer.status_code == 200
    assert answer.json()["info"]["error"]["name"] == "APIError"


def test_an_abort_of_a_session_at_rest_says_that_it_rests(server, client, session):
    with heard(server, about=session) as events:
        assert client.post(f"/session/{session}/abort").json() is True
        idle = until(events, "session.idle")

    status = next(event for event in events if event["type"] == "session.status")
    assert idle["properties"] == {"sessionID": session}
    assert status["properties"] == {"sessionID": session, "status": {"type": "idle"}}


def test_a_session_is_aborted_in_its_own_project_only(client, session, tmp_path):
    elsewhere = {"directory": str(tmp_path)}
    client.post(f"/session/{session}/prompt_async", json=prompt("x;;%slow 100"))
    refused = client.post(f"/session/{session}/abort", params=elsewhere)
    running = client.get("/session/status").json()
    client.post(f"/session/{session}/abort")

    assert refused.status_code == 404
    assert running == {session: {"type": "busy"}}


def test_what_cannot_wait_is_told_by_tag_and_by_name(client, session):
    client.post(f"/session/{session}/prompt_async", json=prompt("x;;%slow 100"))

    refused = client.post(f"/session/{session}/shell", json={"agent": "build", "command": "true"})
    client.post(f"/session/{session}/abort")

    message = f"session {session} is busy; wait for its turn to end, or abort it"
    assert refused.status_code == 409
    assert refused.json() == {
        "_tag": "SessionBusyError",
        "sessionID": session,
        "message": message,
        "name": "SessionBusyError",
        "data": {"message": message},
    }


@pytest.mark.parametrize("route", ["message", "prompt_async"])
async def test_a_session_of_another_process_takes_no_prompt(server, client, session, route):
    storage = await SqliteStorage.open(server.places / "data" / "pegboard.db", ids=IdSource())
    fence = await storage.claim(session)
    refused = client.post(f"/session/{session}/{route}", json=prompt("refused"))
    await storage.release(fence)
    await storage.aclose()
    client.post(f"/session/{session}/message", json=prompt("hi"))

    assert refused.status_code == 409
    assert refused.json()["name"] == "SessionBusyError"
    assert "refused" not in client.get(f"/session/{session}/message").text


def test_a_body_of_another_shape_is_told_as_such(client, session):
    answer = client.post(f"/session/{session}/message", json={})

    assert answer.status_code == 400
    assert answer.json()["name"] == "BadRequest"
    assert answer.json()["data"]["kind"] == "Payload"


@pytest.mark.parametrize("route", ["message", "prompt_async"])
def test_a_prompt_that_is_not_found_an_agent_for_leaves_nothing_behind(client, session, route):
    refused = client.post(f"/session/{session}/{route}", json=prompt("lost", agent="nobody"))
    stored = client.get(f"/session/{session}/message").json()
    client.post(f"/session/{session}/message", json=prompt("hi"))

    assert refused.status_code == 404
    assert stored == []
    assert "lost" not in client.get(f"/session/{session}/message").text


@pytest.mark.parametrize("route", ["message", "prompt_async"])
def test_a_form_of_answers_that_is_not_supported_is_refused(client, session, route):
    form = {"type": "grammar", "grammar": "root ::= [0-9]+"}
    refused = client.post(f"/session/{session}/{route}", json=prompt("x", format=form))
    stored = client.get(f"/session/{session}/message").json()
    text = client.post(f"/session/{session}/{route}", json=prompt("x", format={"type": "text"}))

    assert refused.status_code == 400
    assert "json_schema" in refused.json()["data"]["message"]
    assert stored == []
    assert text.is_success


def test_an_answer_by_a_schema_is_a_value_of_its_message(client, session):
    number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"type": "json_schema", "schema": number}

    answer = client.post(
        f"/session/{session}/message", json=prompt('%say {"n": 4}', format=form)
    ).json()

    assert answer["info"]["structured"] == {"n": 4}
    asked = client.get(f"/session/{session}/message").json()[0]["info"]
    assert asked["format"]["schema"] == number


NOBODY = {"providerID": "fake", "modelID": "nobody"}


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("message", prompt("x", agent="nobody")),
        ("message", prompt("x", model=NOBODY)),
        ("prompt_async", prompt("x", model=NOBODY)),
        ("command", {"command": "nobody", "arguments": ""}),
        ("shell", {"command": "true", "agent": "nobody"}),
        ("summarize", NOBODY),
    ],
)
def test_what_is_refused_is_told_as_an_event_too(server, client, session, route, body):
    with heard(server, about=session) as events:
        client.post(f"/session/{session}/{route}", json=body)
        told = until(events, "session.error")

    assert told["properties"]["sessionID"] == session
    assert "nobody" in told["properties"]["error"]["data"]["message"]
    assert [event["type"] for event in events].count("session.error") == 1


def test_a_turn_that_comes_to_nothing_is_told_before_its_end(server, client, session):
    with heard(server, about=session) as events:
        refused = client.post(f"/session/{session}/message", json=prompt("x", model=NOBODY))
        until(events, "session.idle")

    kinds = [event["type"] for event in events]
    assert kinds.index("session.error") < kinds.index("session.idle")
    assert refused.json()["name"] == "ProviderModelNotFoundError"
    assert refused.json()["data"] | NOBODY == refused.json()["data"]


@pytest.mark.parametrize("checked", [True, False])
def test_nothing_is_stored_of_a_checked_prompt_that_no_model_can_answer(client, session, checked):
    body = {**prompt("x", model=NOBODY), "checked": checked}
    refused = client.post(f"/session/{session}/message", json=body)

    assert refused.json()["name"] == "ProviderModelNotFoundError"
    stored = client.get(f"/session/{session}/message").json()
    assert len(stored) == (0 if checked else 1)


def test_a_client_brings_the_id_of_its_message(client, session):
    message_id = "msg_ffffffffffff00000000000000"

    answer = client.post(
        f"/session/{session}/message", json=prompt("x;;%say ok", messageID=message_id)
    ).json()

    assert answer["info"]["parentID"] == message_id
    assert answer["info"]["id"] > message_id


def test_many_prompts_of_one_session_are_all_answered(server, client, session):
    def ask(at: int) -> None:
        with server.client() as own:
            sent = own.post(f"/session/{session}/message", json=prompt(f"number {at}"))
            assert sent.status_code == 200

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    turns = client.get(f"/session/{session}/message").json()
    asked = [turn for turn in turns if turn["info"]["role"] == "user"]
    assert len(asked) == 10
    assert turns[-1]["info"]["role"] == "assistant"
    assert session not in client.get("/session/status").json()


def test_both_streams_tell_the_same(server, client, session):
    with (
        heard(server, about=session) as bare,
        heard(server, "/global/event", about=session) as wrapped,
    ):
        client.post(f"/session/{session}/message", json=prompt("x;;%say hi"))
        for events in (bare, wrapped):
            until(events, "session.idle")

    both = min(len(bare), len(wrapped))  # a title may still come
    assert [each["payload"] for each in wrapped[1:both]] == bare[1:both]
    assert {each["directory"] for each in wrapped[1:]} == {str(server.directory)}


def test_the_end_of_its_terminal_answers_the_prompts_that_it_ends(model_port, tmp_path):
    with served(tmp_path, model_port) as server, server.client() as client:
        session = client.post("/session").json()["id"]
        path = f"/session/{session}/message"
        with heard(server) as events, ThreadPoolExecutor(1) as threads:
            asked = threads.submit(client.post, path, json=prompt("%slow 6000"))
            until(events, "message.part.delta")
            while (ended := server.process.poll()) is None:  # a shell repeats it, at any time
                server.process.send_signal(signal.SIGHUP)
                time.sleep(0.001)
            answer = asked.result(30)

    assert answer.json()["info"]["error"]["name"] == "MessageAbortedError"
    assert ended == 0
    assert "Traceback" not in (tmp_path / "server.log").read_text()
