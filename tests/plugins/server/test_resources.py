"""Sessions, files, projects and settings over HTTP."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from pegboard.schema.session import Rule
from pegboard_plugins.server.configuration import mask, permission_table
from pegboard_plugins.server.filesearch import best_names
from pegboard_plugins.server.keymask import MASK
from support.wire.served import Served, served


def prompt(client: httpx.Client, session: str, text: str) -> Any:
    body = {"parts": [{"type": "text", "text": text}]}
    return client.post(f"/session/{session}/message", json=body).json()


@pytest.fixture
def session(client: httpx.Client) -> str:
    return str(client.post("/session", json={"title": "about numbers"}).json()["id"])


def test_a_session_lives_from_its_making_to_its_end(client, session):
    child = client.post("/session", json={"parentID": session}).json()
    renamed = client.patch(f"/session/{session}", json={"title": "other"}).json()
    children = client.get(f"/session/{session}/children").json()
    gone = client.delete(f"/session/{session}")

    assert renamed["title"] == "other"
    assert [each["id"] for each in children] == [child["id"]]
    assert gone.json() is True
    for each in (session, child["id"]):
        missing = client.get(f"/session/{each}")
        assert missing.status_code == 404
        assert missing.json()["name"] == "NotFoundError"


def test_sessions_are_found_by_title_those_used_last_first(client, session):
    client.post("/session", json={"title": "about LETTERS"})

    found = client.get("/session", params={"search": "letters", "limit": 30}).json()
    newest = client.get("/session", params={"limit": 1, "roots": "true"}).json()

    assert "about LETTERS" in {each["title"] for each in found}
    assert session not in {each["id"] for each in found}
    assert newest[0]["title"] == "about LETTERS"


def test_the_newest_messages_can_be_had_alone(client, session):
    prompt(client, session, "%say one")
    last = prompt(client, session, "%say two")["info"]["id"]

    turns = client.get(f"/session/{session}/message", params={"limit": 1}).json()

    assert [turn["info"]["id"] for turn in turns] == [last]
    assert client.get(f"/session/{session}/message/{last}").json() == turns[0]
    assert client.get(f"/session/{session}/message/msg_no").status_code == 404


def test_a_part_is_changed_and_removed(client, session):
    turn = prompt(client, session, "%say one")
    part = next(each for each in turn["parts"] if each["type"] == "text")
    path = f"/session/{session}/message/{turn['info']['id']}/part/{part['id']}"

    changed = client.patch(path, json={**part, "text": "edited"}).json()
    elsewhere = client.patch(path, json={**part, "id": "prt_other"})
    removed = client.delete(path)

    assert (changed["text"], elsewhere.status_code, removed.json()) == ("edited", 400, True)
    assert client.delete(path).status_code == 404


def test_going_back_takes_files_along(server, client, session):
    prompt(client, session, "%write made.txt hello")
    made = server.directory / "made.txt"
    asked = client.get(f"/session/{session}/message").json()[0]["info"]["id"]

    reverted = client.post(f"/session/{session}/revert", json={"messageID": asked}).json()
    was_there = made.exists()
    back = client.post(f"/session/{session}/unrevert").json()

    assert reverted["revert"]["messageID"] == asked
    assert (was_there, made.exists(), "revert" in back) == (False, True, False)


def test_a_shell_line_is_shown_as_a_tool(client, session):
    body = {"agent": "build", "command": "echo $((3*3))"}

    answer = client.post(f"/session/{session}/shell", json=body).json()

    assert answer["parts"][0]["state"]["output"].strip() == "9"


def test_a_summary_is_a_message_of_its_own(client, session):
    prompt(client, session, "%say one")
    body = {"providerID": "fake", "modelID": "fake-model"}

    done = client.post(f"/session/{session}/summarize", json=body)

    last = client.get(f"/session/{session}/message").json()[-1]
    assert (done.json(), last["info"]["summary"]) == (True, True)
    assert "metadata" not in last["info"]


PATHS = [
    "../../../../etc/passwd",
    "/etc/passwd",
    "/proc/self/environ",
    "..%2f..%2fetc/passwd",
    "link/passwd",
    "a\\..\\..\\b",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_out_of_the_project(server, client, path):
    link = server.directory / "link"
    if not link.exists():
        link.symlink_to("/etc")

    answer = client.get("/file/content", params={"path": path})

    assert answer.status_code in {200, 403}
    assert "root:" not in answer.text
    assert answer.status_code == 403 or answer.json()["content"] == ""


def test_a_path_with_a_nul_is_refused(client):
    assert client.get("/file/content", params={"path": "a\0b"}).status_code == 400


def test_files_are_read_listed_and_found(client):
    read = client.get("/file/content", params={"path": "calc.py"}).json()
    nodes = client.get("/file", params={"path": "."}).json()
    named = client.get("/find/file", params={"query": "calc"}).json()
    lines = client.get("/find", params={"pattern": "def add"}).json()
    newer = client.get("/api/fs/find", params={"query": "calc"}).json()

    assert read["content"].startswith("def add")
    assert {"README.md", "calc.py"} <= {node["name"] for node in nodes}
    assert named[0] == "calc.py"
    assert [(each["path"]["text"], each["line_number"]) for each in lines] == [("calc.py", 1)]
    assert newer["data"][0] == {"path": "calc.py", "type": "file"}


def test_a_bad_pattern_is_named(client):
    answer = client.get("/find", params={"pattern": "("})

    assert answer.status_code == 400


def test_a_pipe_is_not_read(server, client):
    pipe = server.directory / "pipe"
    os.mkfifo(pipe)

    answer = client.get("/file/content", params={"path": "pipe"}, timeout=30)
    pipe.unlink()

    assert answer.json()["content"] == ""


def test_a_link_to_itself_hides_no_other_file(server, client):
    link = server.directory / "itself"
    link.symlink_to("itself")

    nodes = client.get("/file", params={"path": "."}).json()
    link.unlink()

    assert {"itself", "calc.py"} <= {node["name"] for node in nodes}


def test_no_answer_tells_a_secret(client, session):
    prompt(client, session, "%say one")
    document = client.get("/doc").json()["paths"]
    endless = ("/event", "/global/event", "/pegboard/fleet/event", "/tui/control/next")
    paths = [path for path, each in document.items() if "get" in each and path not in endless]
    model = {"provider": "fake", "model": "fake-model"}
    query = {**model, "pattern": "secret", "query": "e", "path": "."}

    answers = [client.get(path.replace("{sessionID}", session), params=query) for path in paths]

    assert sum(answer.status_code == 200 for answer in answers) > 40
    assert not any("very-secret" in answer.text for answer in answers)
    assert not any("very-secret" in str(answer.headers) for answer in answers)


@pytest.mark.parametrize(
    "message_id", ["../x", "ses_1", "msg_", "msg_" + "x" * 500, "msg_\u00e4", ""]
)
def test_an_id_that_cannot_be_is_refused(client, session, message_id):
    body = {"parts": [{"type": "text", "text": "x"}], "messageID": message_id, "noReply": True}

    answer = client.post(f"/session/{session}/message", json=body)

    assert answer.status_code == 400
    assert client.get(f"/session/{session}/message").json() == []


@pytest.mark.parametrize("name", ["plain", "with space", "h\u00e9", "h\u00e9 100%25 +", "\u5909"])
def test_a_project_is_named_by_query_or_header(client, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    asked = {
        "query": client.get("/path", params={"directory": str(folder)}),
        "header": client.get("/path", headers={"x-opencode-directory": quote(str(folder))}),
        "both": client.get(
            "/path",
            params={"directory": str(folder)},
            headers={"x-opencode-directory": "/no/such/folder"},
        ),
    }
    for coding in ("utf-8", "latin-1"):
        plain = str(folder).encode(coding, "replace")
        if "%" not in name and plain.decode(coding) == str(folder):
            headers = [(b"x-opencode-directory", plain)]
            asked[f"plain header in {coding}"] = client.get("/path", headers=headers)

    assert {way: each.json()["directory"] for way, each in asked.items()} == dict.fromkeys(
        asked, str(folder)
    )


def test_a_folder_that_is_gone_meanwhile_is_an_empty_one(client, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    where = {"directory": str(folder)}
    assert client.get("/path", params=where).status_code == 200
    folder.rmdir()

    paths = {
        "/file": {"path": "."},
        "/find": {"pattern": "x"},
        "/find/file": {"query": "x"},
        "/project/current": {},
        "/vcs": {},
        "/vcs/diff": {},
    }
    answers = {path: client.get(path, params={**where, **rest}) for path, rest in paths.items()}

    assert {path: each.status_code for path, each in answers.items()} == dict.fromkeys(paths, 200)
    assert answers["/find"].json() == answers["/file"].json() == []


def test_what_is_missing_says_so(client, session):
    asked = [
        client.post("/mcp", json={"name": "x", "config": {}}),
        client.post(f"/session/{session}/share"),
    ]

    assert [answer.status_code for answer in asked] == [501] * 2
    assert {answer.json()["name"] for answer in asked} == {"UnsupportedError"}


def test_older_terminal_interfaces_get_their_keys(client):
    keys = client.get("/config").json()["keybinds"]

    assert (keys["command_list"], keys["session_interrupt"]) == ("ctrl+p", "escape")


def test_an_unknown_route_is_json(client):
    answer = client.get("/no/such/route")

    assert answer.status_code == 404
    assert answer.json()["name"] == "NotFoundError"


def test_a_session_of_another_project_is_no_parent(client, session, tmp_path):
    elsewhere = {"directory": str(tmp_path)}

    answers = [
        client.post("/session", json={"parentID": session}, params=elsewhere),
        client.post("/tui/select-session", json={"sessionID": session}, params=elsewhere),
    ]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert client.get(f"/session/{session}/children").json() == []


def test_the_document_names_every_operation_once(client):
    document = client.get("/doc").json()

    names = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert document["openapi"].startswith("3.1")
    assert len(names) == len(set(names)) > 80
    assert {"session.prompt", "event.subscribe", "permission.reply"} <= set(names)


ROUTES = """
from fastapi import APIRouter
from pydantic import BaseModel
from pegboard import hookimpl

class Session(BaseModel):
    words: str

@hookimpl
def register_routes():
    router = APIRouter()

    @router.get("/hello")
    async def hello():
        return {"hello": "world"}

    @router.get("/broken")
    async def broken():
        raise KeyError("it broke")

    @router.post("/greet/{name}")
    async def greet(name: str, said: Session) -> Session:
        return said

    return [router]
"""


@pytest.mark.fires("register_routes")
def test_a_plugin_adds_routes_under_its_name(model_port, tmp_path):
    file: Path = tmp_path / "config" / "plugin" / "greeter.py"
    file.parent.mkdir(parents=True)
    file.write_text(ROUTES)
    (tmp_path / "config" / "pegboard.toml").write_text(f"plugin_paths = [{json.dumps(str(file))}]")

    with served(tmp_path, model_port) as server, server.client() as client:
        stranger = httpx.get(f"{server.url}/plugin/greeter/hello")
        broken = client.get("/plugin/greeter/broken")
        answer = client.get("/plugin/greeter/hello")
        doc = client.get("/doc").json()
        log = (tmp_path / "server.log").read_text()

    assert stranger.status_code == 401
    assert answer.json() == {"hello": "world"}
    assert {"/plugin/greeter/hello", "/plugin/greeter/broken"} < doc["paths"].keys()
    greet = doc["paths"]["/plugin/greeter/greet/{name}"]["post"]
    schema = greet["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    assert schema == "#/components/schemas/greeter.Session"
    theirs, ours = (doc["components"]["schemas"][f"{by}Session"] for by in ("greeter.", ""))
    assert (list(theirs["properties"]), "slug" in ours["properties"]) == (["words"], True)
    number = broken.headers["x-request-id"]
    assert (broken.status_code, broken.json()["data"]["ref"]) == (500, f"err_{number}")
    assert f"{number} GET '/plugin/greeter/broken' 500" in log
    assert log.count("Traceback") == 1


def test_a_configuration_that_cannot_be_read_is_told(server: Served, client, tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "pegboard.toml").write_text("model = [")

    answer = client.get("/config", params={"directory": str(tmp_path)})

    assert answer.status_code == 400
    assert "pegboard.toml" in answer.json()["data"]["message"]


def test_the_last_rule_for_a_pattern_stands_last() -> None:
    rules = [
        Rule(permission="bash", pattern="*", action="ask"),
        Rule(permission="edit", pattern="*", action="allow"),
        Rule(permission="bash", pattern="ls", action="allow"),
        Rule(permission="bash", pattern="*", action="deny"),
    ]

    table = permission_table(rules)

    assert list(table.items()) == [("edit", "allow"), ("bash", {"ls": "allow", "*": "deny"})]


def test_secrets_are_masked_wherever_they_stand() -> None:
    value = {
        "apiKey": "a",
        "headers": {"X-Any": "b"},
        "nested": [{"token": "c"}],
        "url": "https://e:f@g.example/h@i?j=k&sessionToken=l#m",
        "plain": "n",
    }

    assert mask(value) == {
        "apiKey": MASK,
        "headers": {"X-Any": MASK},
        "nested": [{"token": MASK}],
        "url": f"https://{MASK}@g.example/h@i?j=k&sessionToken={MASK}#m",
        "plain": "n",
    }


def test_the_nearest_names_come_first() -> None:
    names = ["src/", "src/calculator.py", "docs/calc.md", "calc.py", "other.txt"]

    assert best_names(names, "calc", 3) == ["calc.py", "docs/calc.md", "src/calculator.py"]
    assert best_names(names, "sccl", 3) == ["src/calculator.py"]
