"""What a client makes of a server's bytes and files, without a server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contract import sync_client
from pegboard.client import Client, ServerError, ServerUnreachableError
from pegboard.client.answers import value_of
from pegboard.client.events import FrameReader, event_of
from pegboard.client.runtime import running
from pegboard.schema.event import Custom, Event
from pegboard.schema.message import Turn


def test_the_two_clients_are_one_code() -> None:
    assert sync_client.stored() == sync_client.made(), "python -m contract.sync_client makes it"


def test_importing_the_client_loads_no_engine_and_no_http() -> None:
    code = "import sys, pegboard.client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    heavy = {"apsw", "httpx", "pegboard.app", "pegboard.session", "pydantic"}
    assert not heavy & set(done.stdout.split())


def test_a_server_is_found_by_its_file(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    env = {f"PEGBOARD_{name}_DIR": str(tmp_path / "state") for name in ("STATE", "CONFIG")}
    with pytest.raises(ServerUnreachableError, match="pegboard serve"):
        Client.discover(env=env)
    facts = {"url": "http://127.0.0.1:1", "pid": os.getpid(), "token": "t", "directory": "/one"}
    _tell(state / "server-1.json", facts)
    _tell(state / "server-2.json", {**facts, "url": "http://127.0.0.1:2", "directory": "/two"})
    _tell(state / "server-3.json", {**facts, "url": "http://127.0.0.1:3"}, mode=0o644)
    _tell(state / "server-4.json", {**facts, "pid": 2**22 + 1})

    assert len(running(state)) == 2
    assert Client.discover("/one/below", env=env).url == "http://127.0.0.1:1"
    assert Client.discover("/two", env=env).url == "http://127.0.0.1:2"
    same = Client.discover("/two", url="http://localhost:1", env=env)
    assert same._link.address.authorization() == "Bearer t"
    other = Client.discover("/two", url="http://elsewhere:1", env=env)
    assert other._link.address.authorization() is None


def _tell(file: Path, facts: dict[str, object], mode: int = 0o600) -> None:
    file.write_text(json.dumps(facts))
    file.chmod(mode)


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
