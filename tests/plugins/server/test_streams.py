"""Event streams: framing, resuming, slow clients, clients that go."""

import asyncio
import json
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pegboard import AppOptions
from pegboard_plugins.server.deltas import CODED_BYTES, EVENT_BYTES
from pegboard_plugins.server.feed import (
    FRESH_FRAMES,
    KEPT_BYTES,
    KEPT_FRAMES,
    TAKEN_BYTES,
    TAKEN_FRAMES,
    EventFeed,
    EventFrame,
    FeedListener,
)
from pegboard_plugins.server.lifecycle import UNHEARD_MS, ServerSettings, listening
from pegboard_plugins.server.sse import HEARTBEAT_S
from support.wire.served import Served, served


def frames(server: Served, path: str, count: int, **headers: str) -> list[dict[str, str]]:
    """The first frames of a stream, each as its fields."""
    with server.client() as client, client.stream("GET", path, headers=headers) as stream:
        text = ""
        for piece in stream.iter_text():
            text += piece
            if text.count("\n\n") >= count:
                break
    blocks = text.split("\n\n")[:count]
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


def test_a_stream_has_data_lines_and_nothing_else(server):
    plain = {"accept-encoding": "identity"}
    with server.client(headers=plain) as client, client.stream("GET", "/event") as stream:
        first = next(stream.iter_raw())
        kind = stream.headers["content-type"]

    assert kind.startswith("text/event-stream")
    assert first.startswith(b"data: {")
    assert first.endswith(b"}\n\n")
    assert b"\r" not in first
    assert json.loads(first[6:])["type"] == "server.connected"


def test_a_client_that_asks_for_ids_goes_on_where_it_was(server, client):
    with server.client() as other, other.stream("GET", "/event?ids=true") as stream:
        lines = stream.iter_lines()
        next(lines)
        session = client.post("/session").json()["id"]
        number = next(line for line in lines if line.startswith("id: "))
    client.patch(f"/session/{session}", json={"title": "while it was away"})

    missed = frames(server, "/event", 2, **{"last-event-id": number.removeprefix("id: ")})

    told = json.loads(missed[1]["data"])
    assert told["type"] in {"session.created", "session.updated"}
    assert missed[1]["id"] > number.removeprefix("id: ")


@pytest.mark.parametrize("last", ["garbage", "0-1", "x" * 500, "-1", "0-99999999999999999999"])
def test_a_client_that_cannot_go_on_is_told_to_read_anew(server, last):
    told = frames(server, "/event", 2, **{"last-event-id": last})

    assert [json.loads(each["data"])["type"] for each in told] == [
        "server.connected",
        "server.resync",
    ]


def test_a_disposed_directory_ends_its_streams(server, client, tmp_path):
    where = {"directory": str(tmp_path)}
    with client.stream("GET", "/event", params=where) as stream:
        lines = stream.iter_lines()
        next(lines)
        with server.client() as other:
            assert other.post("/instance/dispose", params=where).json() is True
        rest = [json.loads(line[6:])["type"] for line in lines if line]

    assert rest[-1] == "server.instance.disposed"


def test_events_of_one_directory_stay_there(server, client, tmp_path):
    with client.stream("GET", "/event", params={"directory": str(tmp_path)}) as stream:
        lines = stream.iter_lines()
        next(lines)
        with server.client() as other:
            other.post("/session")
            own = other.post("/session", params={"directory": str(tmp_path)}).json()["id"]
        next(lines)
        told = json.loads(next(lines)[6:])

    assert told["properties"]["info"]["id"] == own


def test_many_clients_come_and_go_without_a_trace(server, client):
    port = int(server.url.rpartition(":")[2])
    head = f"GET /event HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {server.token}"
    connections = []
    for _ in range(200):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(f"{head}\r\n\r\n".encode())
        connections.append(connection)
    for connection in connections:
        assert b"server.connected" in _read(connection)
    for connection in connections:
        connection.close()

    end = time.monotonic() + 60
    while time.monotonic() < end and _open_sockets(port) > 20:
        time.sleep(0.1)

    assert _open_sockets(port) <= 20


def _read(connection: socket.socket) -> bytes:
    connection.settimeout(60)
    heard = b""
    while b"\n\n" not in heard:
        heard += connection.recv(4096)
    return heard


def _open_sockets(port: int) -> int:
    """The server's ends of connections; its own folder in /proc is closed to other users."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    held = {"01", "08", "0A"}  # established, closed by the client alone, listening
    return sum(row[1].endswith(f":{port:04X}") and row[3] in held for row in rows)


def test_a_client_that_never_reads_fills_no_memory(server, client):
    port = int(server.url.rpartition(":")[2])
    head = f"GET /event HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {server.token}"
    text = {"text": "x" * (1 << 20)}
    for _ in range(20):  # what the requests themselves need is no longer new
        assert client.post("/tui/append-prompt", json=text).json() is True
    with socket.create_connection(("127.0.0.1", port)) as deaf:
        deaf.sendall(f"{head}\r\n\r\n".encode())
        assert b"server.connected" in _read(deaf)
        before_mb = server.resident_mb
        for _ in range(150):
            assert client.post("/tui/append-prompt", json=text).json() is True
        grown_mb = server.resident_mb - before_mb

    assert grown_mb < 32


def test_clients_of_a_directory_get_these_bytes_around_a_delta() -> None:
    feed = EventFeed()
    assert feed.around("/a") == 0

    feed.listen(None, coded=True)
    feed.listen(Path("/a"), coded=True)
    feed.listen(Path("/a"))
    feed.listen(Path("/b"))

    assert feed.around("/a") == 2 * CODED_BYTES + EVENT_BYTES


async def test_a_slow_client_loses_what_is_no_longer_kept_and_knows_it() -> None:
    feed = EventFeed()
    slow = feed.listen(None)
    for at in range(KEPT_FRAMES + 5):
        feed.publish(b'{"n":%d}' % at, directory=None)

    heard = await all_of(slow)

    assert slow.missed == 5
    assert [frame.event for frame in heard] == [
        b'{"n":%d}' % at for at in range(5, KEPT_FRAMES + 5)
    ]


async def test_what_a_client_gets_at_a_time_is_bounded() -> None:
    feed = EventFeed()
    small, large = feed.listen(Path("/small")), feed.listen(Path("/large"))
    for _ in range(TAKEN_FRAMES + 1):
        feed.publish(b"{}", directory="/small")
    for _ in range(3):
        feed.publish(b"x" * (TAKEN_BYTES - 1), directory="/large")

    assert [len(await small.frames(1)) for _ in range(2)] == [TAKEN_FRAMES, 1]
    assert [len(await large.frames(1)) for _ in range(3)] == [1, 1, 1]


async def test_an_event_larger_than_all_that_is_kept_arrives() -> None:
    feed = EventFeed()
    listener = feed.listen(None)
    feed.publish(b"{}", directory=None)
    feed.publish(b"x" * (KEPT_BYTES + 1), directory=None)

    heard = await all_of(listener)

    assert (listener.missed, [len(frame.event) for frame in heard]) == (1, [KEPT_BYTES + 1])


async def test_what_other_directories_tell_puts_nobody_behind() -> None:
    feed = EventFeed()
    listener = feed.listen(Path("/a"))
    for _ in range(KEPT_FRAMES + 1):
        feed.publish(b"{}", directory="/b")
    feed.publish(b'{"mine":1}', directory="/a")

    heard = await all_of(listener)

    assert (listener.missed, [frame.event for frame in heard]) == (0, [b'{"mine":1}'])


async def test_who_hears_of_no_other_directory_comes_back_without_a_loss() -> None:
    feed = EventFeed()
    listener = feed.listen(Path("/a"))
    for _ in range(KEPT_FRAMES + 1):
        feed.publish(b"{}", directory="/b")

    back = feed.listen(Path("/a"), after=feed.frame_id(listener.heard))
    feed.publish(b'{"mine":1}', directory="/a")

    assert [frame.event for frame in await back.frames(1)] == [b'{"mine":1}']
    assert (listener.heard, back.missed) == (KEPT_FRAMES + 1, 0)


async def test_who_reads_loses_nothing_of_a_burst_beside_one_who_does_not() -> None:
    feed = EventFeed()
    reading, deaf = feed.listen(None), feed.listen(None)
    burst = [b'{"n":%d}' % at for at in range(3 * KEPT_FRAMES)]

    async with asyncio.TaskGroup() as group:
        listening = group.create_task(all_of(reading, until=len(burst)))
        await asyncio.sleep(0)
        await feed.publish_all([(each, False) for each in burst], directory="/a", project=None)

    assert [frame.event for frame in listening.result()] == burst
    assert reading.missed == 0
    await all_of(deaf)
    assert deaf.missed == len(burst) - KEPT_FRAMES


async def test_a_publisher_lets_others_work_between_its_events() -> None:
    feed = EventFeed()
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    working = asyncio.create_task(work())
    await feed.publish_all([(b"{}", False)] * (10 * FRESH_FRAMES), directory="/a", project=None)
    working.cancel()

    assert turns >= 9


async def all_of(listener: FeedListener, *, until: int = 0) -> list[EventFrame]:
    """What is there for a client; with `until` as many frames, which may be yet to come."""
    heard = list(await listener.frames(10))
    while until and len(heard) < until:
        heard += await listener.frames(10)
    while not until and (more := await listener.frames(0.01)):
        heard += more
    return heard


async def test_what_is_kept_for_resuming_is_bounded() -> None:
    feed = EventFeed()
    for _ in range(KEPT_FRAMES + 10):
        feed.publish(b"{}", directory=None)

    too_late = feed.listen(None, after=feed.frame_id(5))
    in_time = feed.listen(None, after=feed.frame_id(KEPT_FRAMES))

    assert too_late.missed == 1
    assert len(await all_of(in_time)) == 10


async def test_a_listener_hears_its_directory_and_what_is_for_all() -> None:
    feed = EventFeed()
    listener = feed.listen(None)
    listener.directory = "/a"
    feed.publish(b"1", directory="/a", project="p")
    feed.publish(b"2", directory="/b")
    feed.publish(b"3", directory=None)

    frames = await listener.frames(1)

    assert [frame.event for frame in frames] == [b"1", b"3"]
    assert frames[0].envelope() == b'{"directory":"/a","project":"p","payload":1}'
    assert frames[1].envelope() == b'{"payload":3}'


def test_a_stop_ends_the_streams_and_takes_the_file_away(model_port, tmp_path):
    with served(tmp_path, model_port) as server:
        client = server.client()
        with client.stream("GET", "/event") as stream:
            lines = stream.iter_lines()
            next(lines)
            began = time.monotonic()
            server.process.terminate()
            assert [line for line in lines if line] == []
        client.close()
        assert server.process.wait(60) == 0

    assert time.monotonic() - began < 60
    assert not server.runtime_file.exists()


async def test_a_stream_that_begins_once_the_server_stops_ends_at_once():
    feed = EventFeed()
    feed.close()

    listener = feed.listen(None)

    assert await asyncio.wait_for(listener.frames(3600), 60) == ()
    assert listener.closed


def test_requests_that_a_stop_cancels_leave_no_trace_in_the_log(model_port, tmp_path):
    with served(tmp_path, model_port) as server, server.client() as client:
        session = client.post("/session").json()["id"]
        prompt = {"parts": [{"type": "text", "text": "x;;%slow 600"}]}
        with ThreadPoolExecutor() as pool:
            asking = pool.submit(client.post, f"/session/{session}/message", json=prompt)
            while session not in client.get("/session/status").json():
                time.sleep(0.01)
            while server.process.poll() is None:
                server.process.send_signal(signal.SIGINT)  # the second one is obeyed at once
                time.sleep(0.05)
            asking.exception(60)  # the answer, or that the connection ended

    log = (tmp_path / "server.log").read_text()
    assert "stopping" in log
    assert "Traceback" not in log


def test_a_killed_server_loses_nothing_that_it_acknowledged(model_port, tmp_path):
    with served(tmp_path, model_port) as server:
        with server.client() as client:
            session = client.post("/session").json()["id"]
            prompt = {"parts": [{"type": "text", "text": "x;;%slow 50"}]}
            assert client.post(f"/session/{session}/prompt_async", json=prompt).status_code == 204
        server.process.kill()
        server.process.wait()
        server.runtime_file.unlink()

    with served(tmp_path, model_port) as again, again.client() as client:
        turns = client.get(f"/session/{session}/message").json()
        answer = client.post(
            f"/session/{session}/message", json={"parts": [{"type": "text", "text": "%say on"}]}
        )

    assert turns[0]["parts"][0]["text"] == "x;;%slow 50"
    assert answer.json()["parts"][1]["text"] == "on"


def test_a_client_that_is_switched_off_is_noticed(tmp_path):
    with listening(ServerSettings(directory=tmp_path, options=AppOptions(), port=0)) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            limit_ms = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)

    assert limit_ms == UNHEARD_MS
    assert HEARTBEAT_S + UNHEARD_MS / 1000 <= 30
