"""The results of a batch: complete lines, a Parquet table, and a trajectory for each attempt."""

import json
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from batches import OK, Jobs, results_of, worker
from pegboard_fleet.journal import JobResult

from plugins.cli.commands import CommandLine
from support.models.model_server import Answer, ModelServer, call, say, step_of
from support.sessions.trajectories import check_trajectory
from support.tools.worktrees import git


@pytest.fixture
async def out(line: CommandLine, jobs: Jobs, repository: Path, tmp_path: Path) -> Path:
    """Run a batch of two jobs, the second of which has no session; return its folder."""
    file = jobs(
        {
            "id": "good",
            "prompt": "go",
            "repo": str(repository),
            "check": "echo fine",
            "labels": ["a", "b"],
            "meta": {"level": 3},
        },
        {"id": "ill", "prompt": "go", "repo": str(tmp_path / "missing")},
    )
    folder = tmp_path / "out"
    async with ModelServer(worker) as server:
        line.use_model(server.url, **OK)
        done = await line("batch", "run", file, "--out", str(folder))
    assert done.code == 4, done.err
    return folder


async def test_each_line_has_each_field(out: Path) -> None:
    good, ill = results_of(out)

    assert set(good) == set(ill) == set(JobResult.__struct_fields__)
    assert (good["error"], good["refused"], ill["answer"], ill["check"]) == ("", 0, "", None)
    assert good["worker"] == ill["worker"]
    assert good["worker"].startswith(f"{socket.gethostname()}:")


async def test_each_attempt_with_a_session_has_a_trajectory(line: CommandLine, out: Path) -> None:
    done = await line("batch", "results", str(out), "--format", "atif")

    assert done.out.strip() == str(out / "trajectories")
    (file,) = (out / "trajectories").iterdir()
    document = json.loads(file.read_text())
    check_trajectory(document)
    (good, _) = results_of(out)
    assert (file.name, document["session_id"]) == ("good-1.json", good["session_id"])
    assert document["final_metrics"]["total_cost_usd"] == pytest.approx(good["cost_usd"])
    assert document["steps"][-1]["message"] == good["answer"] == "Written."
    calls = [each for step in document["steps"] for each in step.get("tool_calls", [])]
    assert [each["function_name"] for each in calls] == ["write"]


async def test_a_patch_makes_the_same_bytes_whatever_the_encoding_of_a_text(
    line: CommandLine, jobs: Jobs, repository: Path, tmp_path: Path
) -> None:
    (repository / "old.txt").write_bytes("Käse\n".encode("latin-1"))
    git(repository, "add", "-A")
    git(repository, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "cheese")
    command = (
        r"printf 'K\344se und Br\366tchen\n' > old.txt; printf '\303\251t\303\251\n' > new.txt"
    )

    def script(body: dict[str, Any]) -> Answer:
        bash = call("bash", {"command": command, "description": "Write"})
        return say("Written.") if step_of(body) else bash

    file = jobs({"id": "one", "prompt": "go", "repo": str(repository)})
    async with ModelServer(script) as server:
        line.use_model(server.url, **OK)
        await line("batch", "run", file, "--out", str(tmp_path / "out"))

    (result,) = results_of(tmp_path / "out")
    (patch := tmp_path / "patch").write_text(result["patch"])
    git(repository, "apply", str(patch))
    assert (repository / "old.txt").read_bytes() == "Käse und Brötchen\n".encode("latin-1")
    assert (repository / "new.txt").read_text() == "été\n"


async def test_parquet_without_pyarrow_names_the_command_that_installs_it(
    line: CommandLine, out: Path, tmp_path: Path
) -> None:
    (broken := tmp_path / "broken").mkdir()
    (broken / "pyarrow.py").write_text('raise ImportError("not here")\n')
    line.env["PYTHONPATH"] = f"{broken}:{line.env['PYTHONPATH']}"
    done = await line("batch", "results", str(out), "--format", "parquet")

    assert done.code == 2
    assert "pyarrow cannot be imported (not here)" in done.err
    assert "pip install 'pegboard-fleet[parquet]'" in done.err
    assert not (out / "results.parquet").exists()


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow cannot be imported here")
async def test_a_parquet_table_has_the_columns_of_the_lines(line: CommandLine, out: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    line.env["PYTHONPATH"] += f":{Path(pa.__file__).parents[1]}"
    done = await line("batch", "results", str(out), "--format", "parquet")
    table = pq.read_table(done.out.strip())

    (good, ill) = results_of(out)
    rows = table.to_pylist()
    assert table.column_names == list(JobResult.__struct_fields__)
    assert table.schema.field("started").type == pa.timestamp("ms", tz="UTC")
    assert [each["started"].timestamp() for each in rows] == pytest.approx(
        [good["started"], ill["started"]], abs=0.001
    )
    assert rows[0]["check"] == {"exit": 0, "output_tail": "fine\n"}
    assert (rows[0]["labels"], json.loads(rows[0]["meta"])) == (["a", "b"], {"level": 3})
    plain = ("id", "attempt", "status", "session_id", "answer", "patch", "error", "cost_usd")
    for row, result in zip(rows, (good, ill), strict=True):
        assert {name: row[name] for name in plain} == {name: result[name] for name in plain}
