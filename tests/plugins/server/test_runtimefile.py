"""The file in which a server tells of itself."""

import json
import socket
import stat
from pathlib import Path

import pytest
from pegboard_client.runtime import running

from pegboard_plugins.server.runtimefile import write_runtime_file
from support.processes import forks
from support.wire.served import make_project, served

FACTS = {"url": "http://127.0.0.1:1", "pid": 1, "directory": "/one", "token": "t"}


def test_a_server_is_told_of_as_long_as_it_lives(tmp_path: Path) -> None:
    path = tmp_path / "state" / "server-1.json"

    with write_runtime_file(path, FACTS) as file:
        assert [each.token for each in running(path.parent)] == ["t"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        file.remove()
        assert list(path.parent.iterdir()) == []


def test_a_server_leaves_the_file_of_the_one_after_it(tmp_path: Path) -> None:
    path = tmp_path / "server-1.json"

    with write_runtime_file(path, FACTS):
        after = write_runtime_file(path, {**FACTS, "token": "u"})
    with after:
        assert [each.token for each in running(tmp_path)] == ["u"]


@pytest.mark.parametrize("kind", ["link", "dead link", "file"])
def test_what_stands_in_the_place_is_replaced_and_not_followed(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "server-1.json", tmp_path / "other"
    if kind != "dead link":
        other.write_text("mine")
    if kind == "file":
        path.write_text("{}")
        path.chmod(0o666)
    else:
        path.symlink_to(other)

    with write_runtime_file(path, FACTS):
        assert not path.is_symlink()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not other.exists() or other.read_text() == "mine"


def test_what_a_killed_server_left_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "server-1.json").write_text("{}")
    with (
        write_runtime_file(tmp_path / "server-2.json", FACTS),
        write_runtime_file(tmp_path / "server-3.json", FACTS),
    ):
        names = {each.name for each in tmp_path.iterdir()}

    assert names == {"server-2.json", "server-3.json"}


LOOK = """
from pathlib import Path
from pegboard import hookimpl

@hookimpl
def register_routes():
    here = Path(__file__).parent
    (here / "seen").write_text(str(list((here / "state").glob("server-*"))))
    return []
"""


def test_a_server_is_told_of_once_it_listens(model_port: int, tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(LOOK)
    (tmp_path / "config").mkdir()
    config = tmp_path / "config" / "pegboard.toml"
    config.write_text(f"plugin_paths = [{json.dumps(str(tmp_path / 'plugin.py'))}]\n")

    with served(tmp_path, model_port) as server:
        before = (tmp_path / "seen").read_text()
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))):
            assert server.runtime_file.exists()

    assert before == "[]"
    assert not server.runtime_file.exists()


@pytest.mark.parametrize("fault", ["the port is taken", "the state cannot be written"])
def test_a_server_that_does_not_come_up_says_why_and_leaves_no_file(
    tmp_path: Path, fault: str
) -> None:
    work, state = make_project(tmp_path / "work"), tmp_path / "state"
    names = ("data", "state", "config", "cache")
    places = {f"PEGBOARD_{name.upper()}_DIR": str(tmp_path / name) for name in names}
    if fault == "the state cannot be written":
        (tmp_path / "file").touch()
        places["PEGBOARD_STATE_DIR"] = str(tmp_path / "file" / "state")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1] if fault == "the port is taken" else 0
        done = forks.run(
            [forks.PEGBOARD, "-C", str(work), "serve", f"--port={port}"],
            cwd=tmp_path,
            env={**forks.environment(), **places, "HOME": str(tmp_path)},
        )

    *_, last = done.stderr.splitlines()
    assert last.startswith("error: cannot ")
    assert "PEGBOARD_STATE_DIR" in last or "--port 0" in last
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert not state.exists() or list(state.glob("server-*")) == []
    assert list(tmp_path.rglob("crash-*")) == []
