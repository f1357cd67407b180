"""A project's own code runs when somebody has said yes, over the protocol's own question."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from pegboard.unstable import TrustStore
from support.wire.served import make_project

TOOL = '''
from pegboard import tool

@tool
def hello(name: str) -> str:
    """Greet someone."""
    return f"Hello, {name}!"
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = make_project(tmp_path / "project")
    (made / "tool").mkdir()
    (made / "tool" / "hello.py").write_text(TOOL)
    return made


def asked(client: httpx.Client, where: dict[str, str]) -> tuple[str, Any]:
    """A session with a prompt, and the question that came with it."""
    session = client.post("/session", params=where).json()["id"]
    body = {"parts": [{"type": "text", "text": "%say hi"}]}
    answer = client.post(f"/session/{session}/message", params=where, json=body)
    assert answer.json()["parts"][1]["text"] == "hi"
    end = time.monotonic() + 30
    while not (questions := client.get("/question", params=where).json()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return session, questions


def tools(client: httpx.Client, where: dict[str, str]) -> list[str]:
    found: list[str] = client.get("/experimental/tool/ids", params=where).json()
    return found


@pytest.mark.parametrize(("label", "runs"), [("Trust", True), ("Do not trust", False)])
def test_the_user_decides_about_a_project_s_code(client, project, label, runs):
    where = {"directory": str(project)}
    _, questions = asked(client, where)
    before = tools(client, where)

    path = f"/question/{questions[0]['id']}/reply"
    client.post(path, params=where, json={"answers": [[label]]})

    end = time.monotonic() + (30 if runs else 0.5)
    while time.monotonic() < end and "hello" not in tools(client, where):
        time.sleep(0.1)
    assert "hello.py" in questions[0]["questions"][0]["question"]
    assert "hello" not in before
    assert ("hello" in tools(client, where)) == runs


def test_a_project_is_asked_about_once(client, project):
    where = {"directory": str(project)}
    asked(client, where)

    _, questions = asked(client, where)

    assert len(questions) == 1


def test_what_is_too_long_to_be_shown_cannot_be_said_yes_to(client, project):
    where = {"directory": str(project)}
    for number in range(100):
        (project / "tool" / f"tool_number_{number}.py").write_text(TOOL)

    _, questions = asked(client, where)
    path = f"/question/{questions[0]['id']}/reply"
    client.post(path, params=where, json={"answers": [["Trust"]]})

    [question] = questions[0]["questions"]
    assert "101 files, and too much for a question: `pegboard trust allow`" in question["question"]
    assert [option["label"] for option in question["options"]] == ["Do not trust"]
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        assert "hello" not in tools(client, where)
        time.sleep(0.1)


def test_no_name_of_a_file_makes_a_line_of_its_own(client, project):
    odd = project / "tool" / "a\n- harmless.py \u202e.py"
    odd.write_text(TOOL)
    (project / "opencode.json").write_text('{"nothing": 1, "model": "fake/other"}')

    _, questions = asked(client, {"directory": str(project)})

    lines = questions[0]["questions"][0]["question"].split("\n")[1:-1]
    shown = [line.partition(" (")[0].removeprefix(f"- {project}/") for line in lines]
    assert sorted(shown) == ["opencode.json", "tool/a\\n- harmless.py \\u202e.py", "tool/hello.py"]
    [settings] = [line for line in lines if "opencode.json (" in line]
    assert "nothing" in settings
    assert "ignored until you trust this project: model" in settings


def test_a_yes_is_for_the_code_as_it_was_shown(client, project):
    where = {"directory": str(project)}
    session, questions = asked(client, where)
    told = questions[0]["questions"][0]["question"]
    later = TOOL + "\nimport subprocess\n\n@tool\ndef later():\n    subprocess.run(['x'])\n"
    (project / "tool" / "hello.py").write_text(later)

    path = f"/question/{questions[0]['id']}/reply"
    client.post(path, params=where, json={"answers": [["Trust"]]})
    again = wait_for_question(client, where, session)

    assert "imports pegboard" in told
    assert "subprocess.run" not in told
    assert "subprocess.run: runs a process" in again
    assert "changed since it was trusted" in again
    assert not {"hello", "hello_later"} & {*tools(client, where)}


def test_an_edited_tool_acts_at_the_next_prompt_once_another_process_has_approved_it(
    server, client, project
):
    where = {"directory": str(project)}
    session = client.post("/session", params=where).json()["id"]

    def allow() -> None:
        store = TrustStore(server.places / "state" / "trust.json")
        store.allow(store.decide(directory=project, worktree=project))

    def offered() -> list[str]:
        body = {"parts": [{"type": "text", "text": "%say hi"}]}
        client.post(f"/session/{session}/message", params=where, json=body)
        return tools(client, where)

    allow()
    first = offered()
    (project / "tool" / "hello.py").write_text(TOOL.replace("hello", "goodbye"))
    edited = offered()
    allow()
    approved = offered()

    assert "hello" in first
    assert "hello" in edited
    assert "hello_goodbye" not in edited
    assert "hello_goodbye" in approved
    assert "hello" not in approved


def wait_for_question(client, where, session):
    """What the next question says; the App is opened again in between."""
    end = time.monotonic() + 30
    body = {"parts": [{"type": "text", "text": "%say hi"}]}
    while time.monotonic() < end:
        client.post(f"/session/{session}/message", params=where, json=body)
        if questions := client.get("/question", params=where).json():
            return questions[0]["questions"][0]["question"]
    raise AssertionError("nothing was asked again")


def test_the_log_names_code_that_is_left_out_on_one_line(server, client, project):
    (project / "tool" / "broken.py").write_text("from pegboard import tool\n\ndef broken(:\n")
    tools(client, {"directory": str(project)})

    log = (server.places / "server.log").read_text()
    (line,) = [each for each in log.splitlines() if "not loaded" in each and "broken.py" in each]
    assert "not loaded: tool/broken.py, tool/hello.py (not trusted); `pegboard trust allow`" in line
