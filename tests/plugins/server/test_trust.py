"""A project's own code runs when somebody has said yes, over the protocol's own question."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from served import make_project

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
    return session, client.get("/question", params=where).json()


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

    end = time.monotonic() + (5 if runs else 0.5)
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
