"""The main job on real input: an agent at work in a clone of this very project."""

import json
import shutil
import subprocess
from pathlib import Path

import apsw
import pytest

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, call, say

ROOT = Path(__file__).parents[2]
TARGET = "core/pegboard/kit/suggestions.py"
LINE = (ROOT / TARGET).read_text().splitlines()[0]
BETTER = LINE.removesuffix('."""') + ', the likeliest first."""'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that git knows, in a repository of their own."""
    project = tmp_path / "clone"
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, project / name)
    subprocess.run(["git", "init", "-q", project], check=True)
    return project


async def test_a_run_in_a_clone_of_the_project_does_what_the_model_says(
    tmp_path: Path, clone: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    pegboard = CommandLine(home, clone)
    script = by_step(
        call("grep", {"pattern": "Names that somebody", "path": "core"}),
        call("read", {"filePath": TARGET}),
        call("edit", {"filePath": TARGET, "oldString": LINE, "newString": BETTER}),
        call("bash", {"command": "git diff --no-index --stat /dev/null README.md | tail -n 1"}),
        say("The docstring says more."),
    )

    async with ModelServer(script) as server:
        pegboard.use_model(server.url, permission={"external_directory": "allow"})
        done = await pegboard("run", "--format", "json", "Say more in nearest.py")
    session_id = done.records[-1]["sessionID"]
    shown = await pegboard("session", "show", session_id, "--format", "json")

    assert (done.code, done.records[-1]["outcome"]) == (0, "done")
    assert (clone / TARGET).read_text().startswith(BETTER)
    parts = [part for turn in json.loads(shown.out)["messages"] for part in turn["parts"]]
    calls = [part for part in parts if part["type"] == "tool"]
    assert [(part["tool"], part["state"]["status"]) for part in calls] == [
        (name, "completed") for name in ("grep", "read", "edit", "bash")
    ]
    assert "insertions" in calls[-1]["state"]["output"]
    assert _stored_parts(home / "data" / "pegboard.db", session_id) == {
        part["id"]: part for part in parts
    }
    answered = [record["part"]["id"] for record in done.records if record["type"] == "tool_use"]
    assert answered == [part["id"] for part in calls]
    results = [message for message in server.requests[-1]["messages"] if message["role"] == "tool"]
    assert [result["content"] for result in results] == [part["state"]["output"] for part in calls]


def _stored_parts(database: Path, session_id: str) -> dict[str, object]:
    with apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        rows = list(
            connection.execute("SELECT id, data FROM part WHERE session_id = ?", (session_id,))
        )
    return {identity: json.loads(data) for identity, data in rows}
