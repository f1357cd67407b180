"""The user's configuration, changed over the wire."""

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from support.wire.served import Served, served

COMMENTED = """\
{
  // what I like
  "username": "ada",
  "provider": {"own": {
    "options": {
      "apiKey": "very-secret",
      "baseURL": "http://me:very-secret@127.0.0.1:1/v1?api_key=very-secret&v=2",
      "extraBody": {"pass": "very-secret"}
    },
    "models": {"a-key-model": {
      "name": "shown",
      "limit": {"context": 1000, "output": 100},
      "headers": {"X-Any": "very-secret"},
      "options": {"auth": "very-secret"}
    }}
  }},
  "agent": {"own": {"options": {"headers": {"X-Any": "very-secret"}}}}
}
"""


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.fixture(scope="module")
def own(model_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("own")
    (root / "config").mkdir()
    (root / "config" / "opencode.jsonc").write_text(COMMENTED)
    with served(root, model_port) as running:
        yield running


@pytest.fixture
def client(own: Served) -> Iterator[httpx.Client]:
    with own.client() as opened:
        yield opened


def written(own: Served) -> str:
    return (own.places / "config" / "opencode.jsonc").read_text()


@pytest.mark.parametrize("path", ["/config", "/global/config"])
def test_a_change_is_kept_and_counts_at_once(own, client, path):
    rules = {"permission": {"webfetch": "deny"}, "agent": {"plan": {"description": path}}}

    answer = client.patch(path, json=rules)

    assert answer.status_code == 200
    assert answer.json() == client.get(path).json()
    assert answer.json()["permission"]["webfetch"] == "deny"
    agents = {agent["name"]: agent for agent in client.get("/agent").json()}
    assert agents["plan"]["description"] == path
    assert "// what I like" in written(own)
    assert not list(own.directory.glob("*.json*"))
    assert not (own.directory / "pegboard.toml").exists()


def test_an_agent_has_the_fields_that_clients_know(client: httpx.Client) -> None:
    agents = {agent["name"]: agent for agent in client.get("/agent").json()}

    assert "promptAppend" not in agents["plan"]


@pytest.mark.parametrize("path", ["/config", "/global/config", "/agent"])
def test_no_setting_shows_a_secret_wherever_it_stands(own, client, path):
    said = client.get(path).text

    assert "very-secret" not in said
    if "config" in path:
        assert "127.0.0.1:1/v1?api_key=" in said
        assert "a-key-model" in said
        assert "shown" in said


def test_masks_that_come_back_change_no_secret(own, client):
    known = client.get("/config").json()
    assert "very-secret" not in json.dumps(known)

    sent_back = {"provider": known["provider"], "username": "eve"}
    answer = client.patch("/config", json=sent_back)

    assert (answer.status_code, answer.json()["username"]) == (200, "eve")
    assert written(own).count("very-secret") == COMMENTED.count("very-secret")
    assert "\u2022" not in written(own)


@pytest.mark.parametrize(
    "body",
    [
        {"model": 5},
        nested(40),
        nested(900),
        nested(100_000),
        {"permission": {"bash": "perhaps"}},
        {"agent": {"plan": []}},
        [],
        '"text"',
    ],
)
def test_what_cannot_be_used_changes_nothing(own, client, body):
    before = written(own)

    content = body if isinstance(body, str) else json.dumps(body)
    headers = {"content-type": "application/json"}
    answer = client.patch("/config", content=content, headers=headers)

    assert answer.status_code == 400
    assert answer.json()["data"]["message"]
    assert written(own) == before
    assert client.get("/config").status_code == 200


def test_a_project_s_own_file_is_never_written(own, client, tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    file = tmp_path / "opencode.json"
    file.write_text('{"username": "project"}')

    answer = client.patch("/config", json={"snapshot": False}, params={"directory": str(tmp_path)})

    assert answer.status_code == 200
    assert answer.json()["snapshot"] is False
    assert file.read_text() == '{"username": "project"}'
    assert {path.name for path in tmp_path.iterdir()} == {".git", "opencode.json"}


def test_requests_beside_a_change_are_answered(own, client):
    sessions = [client.post("/session").json()["id"] for _ in range(5)]

    def asked(number: int) -> str:
        session = sessions[number % 5]
        match number % 8:
            case 0:
                answer = client.patch("/config", json={"username": f"user {number}"})
            case 1 | 2 | 3:
                body = {"parts": [{"type": "text", "text": f"%say {number}"}]}
                answer = client.post(f"/session/{session}/message", json=body)
            case _:
                answer = client.get(f"/session/{session}/message")
        return "" if answer.status_code == 200 else answer.text

    with ThreadPoolExecutor(8) as threads:
        said = list(threads.map(asked, range(96)))

    turns = [client.get(f"/session/{session}/message").json() for session in sessions]
    infos = [turn["info"] for each in turns for turn in each]
    assert set(said) == {""}
    assert sum(info["role"] == "user" for info in infos) == 36
    assert not any(info.get("error") for info in infos)


def test_a_turn_that_runs_is_not_disturbed(own, client):
    session = client.post("/session").json()["id"]
    prompt = {"parts": [{"type": "text", "text": "x;;%slow 40"}]}
    client.post(f"/session/{session}/prompt_async", json=prompt)

    client.patch("/config", json={"username": "while it ran"})
    turn = client.post(
        f"/session/{session}/message", json={"parts": [{"type": "text", "text": "%say done"}]}
    ).json()

    assert any(part.get("text") == "done" for part in turn["parts"])
    roles = [each["info"].get("error") for each in client.get(f"/session/{session}/message").json()]
    assert roles == [None] * len(roles)
    assert client.get("/config").json()["username"] == "while it ran"
