"""What a client makes of a server's bytes and files, without a server."""

import fcntl
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pegboard_client
import pytest
from pegboard_client import Client, ServerError, ServerUnreachableError
from pegboard_client.answers import value_of
from pegboard_client.events import FrameReader, event_of
from pegboard_client.runtime import running

from pegboard import InvalidInputError
from pegboard.http import is_loopback
from pegboard.schema.event import Custom, Event
from pegboard.schema.message import Turn

PACKAGE = Path(pegboard_client.__file__).parent


def test_the_two_clients_are_one_code() -> None:
    build = runpy.run_path(str(PACKAGE.parent / "hatch_build.py"))
    stored = {path.name: path.read_text() for path in (PACKAGE / "sync").glob("*.py")}

    assert stored == build["made"](PACKAGE / "aio"), "pip install -e contrib/pegboard-client"


def test_importing_the_client_loads_no_engine_and_no_http() -> None:
    code = "import sys, pegboard_client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    heavy = {"apsw", "httpx", "pegboard.app.application", "pegboard.engine", "pydantic"}
    assert not heavy & set(done.stdout.split())


FACTS = {"url": "http://127.0.0.1:1", "pid": 1, "token": "t", "directory": "/one"}


@pytest.fixture
def tell(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Write the file of a server, which lives as long as the test unless it is `dead`."""
    with ExitStack() as lives:

        def write(number: int, *, mode: int = 0o600, dead: bool = False, **facts: str) -> Path:
            file = tmp_path / f"server-{number}.json"
            file.write_text(json.dumps({**FACTS, "url": f"http://127.0.0.1:{number}", **facts}))
            file.chmod(mode)
            if not dead:
                fcntl.flock(lives.enter_context(file.open()), fcntl.LOCK_EX)
            return file

        yield write


def key(directory: str, env: dict[str, str], **more: str) -> str | None:
    return Client.discover(directory, env=env, **more)._link.address.authorization()


def test_a_server_is_found_by_its_file(tmp_path: Path, tell: Callable[..., Path]) -> None:
    env = {f"PEGBOARD_{name}_DIR": str(tmp_path) for name in ("STATE", "CONFIG")}
    with pytest.raises(ServerUnreachableError, match="pegboard serve"):
        Client.discover(env=env)
    tell(1)
    tell(2, directory="/two")
    tell(3, mode=0o644)
    tell(4, dead=True)
    (tmp_path / "server-5.json").symlink_to(tmp_path / "server-1.json")
    os.mkfifo(tmp_path / "server-6.json", 0o600)

    assert len(running(tmp_path)) == 2
    assert Client.discover("/one/below", env=env).url == "http://127.0.0.1:1"
    assert Client.discover("/two", env=env).url == "http://127.0.0.1:2"
    assert key("/two", env, url="http://localhost:1/") == "Bearer t"
    assert key("/two", env, url="http://elsewhere:1") is None


@pytest.mark.parametrize(
    "url", ["http://127.0.0.2:1", "http://[::1]:1", "https://127.0.0.1:1", "http://127.0.0.1:4"]
)
def test_another_address_of_this_machine_may_be_a_stranger_s(
    tmp_path: Path, tell: Callable[..., Path], url: str
) -> None:
    tell(1)
    tell(4, dead=True)

    assert key("/one", {"PEGBOARD_STATE_DIR": str(tmp_path)}, url=url) is None


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://[::1", "http://a:b", "a:1", ""])
def test_what_is_no_address_is_named_also_where_a_server_runs(
    tmp_path: Path, tell: Callable[..., Path], url: str
) -> None:
    tell(1)

    with pytest.raises(InvalidInputError, match="not the address of a server"):
        Client.discover(url=url, env={"PEGBOARD_STATE_DIR": str(tmp_path)})


def test_a_name_of_this_machine_is_not_looked_up(tmp_path: Path, tell: Callable[..., Path]) -> None:
    tell(1)
    client = Client.discover(url="http://LocalHost:1", env={"PEGBOARD_STATE_DIR": str(tmp_path)})

    assert client.url == "http://127.0.0.1:1"


def test_the_password_of_the_environment_is_not_for_who_comes_after_a_server(
    tmp_path: Path, tell: Callable[..., Path]
) -> None:
    env = {"PEGBOARD_STATE_DIR": str(tmp_path), "PEGBOARD_SERVER_PASSWORD": "p"}
    file = tell(1)
    client = Client.discover("/one", env=env)
    file.unlink()

    assert client._link.address.authorization() is None
    assert str(key("/one", env, url="http://127.0.0.1:1")).startswith("Basic ")


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("127.0.0.1", True),
        ("127.255.255.254", True),
        ("::1", True),
        ("0:0:0:0:0:0:0:1", True),
        ("::1%lo", True),
        ("::ffff:127.0.0.1", True),
        ("", False),
        ("0.0.0.0", False),
        ("::", False),
        ("127.1", False),
        ("::ffff:10.0.0.1", False),
        ("localhost.example", False),
        ("127.0.0.1.nip.io", False),
    ],
)
def test_only_this_machine_reaches_what_is_loopback(host: str, is_it: bool) -> None:
    assert is_loopback(host) is is_it


def test_frames_are_cut_where_they_end_and_nowhere_else() -> None:
    text = '{"type":"one","properties":{"text":"a\u2028b\x85c"}}'
    raw = f"id: r-1\r\ndata: {text}\r\n\r\n: a comment\n\ndata: half".encode()
    reader = FrameReader()
    frames = [frame for at in range(len(raw)) for frame in reader.feed(raw[at : at + 1])]

    assert [(frame.id, frame.data.decode()) for frame in frames] == [("r-1", text)]
    event = event_of(frames[0].data)
    assert event == Event(properties=Custom(name="one", data={"text": "a\u2028b\x85c"}))


def test_an_event_that_has_grown_is_told_as_it_is() -> None:
    raw = b'{"type":"session.idle","properties":{"session":{"id":"ses_1"}}}'

    event = event_of(raw)

    assert event == Event(properties=Custom(name="session.idle", data={"session": {"id": "ses_1"}}))
    with pytest.raises(ServerError, match="not an event"):
        event_of(b"<html>")


def test_an_error_that_comes_after_the_status_is_an_error() -> None:
    late = b'   {"name":"NotFoundError","data":{"message":"agent not found: x"}}'

    with pytest.raises(ServerError, match="agent not found") as refused:
        value_of(200, late, Turn, "http://127.0.0.1:1")

    assert refused.value.exit_code == 2
