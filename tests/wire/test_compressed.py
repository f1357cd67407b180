"""Each client that is supported asks for a compressed event stream, unasked, and gets it."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes.forks import PEGBOARD
from support.wire.relay import Relay, relayed
from support.wire.served import Served
from wire.real_clients import SDKS, TERMINALS, Clients, environment

STREAM_WITHIN_S = 60
CLIENT = """
import sys
from pegboard_client import Client
with Client(sys.argv[1]) as client, client.events() as stream:
    print(next(iter(stream)))
"""
OURS = {
    "run": [PEGBOARD, "run", "--attach", "URL", "%say hi"],
    "chat": [PEGBOARD, "chat", "--attach", "URL"],
    "client": [sys.executable, "-c", CLIENT, "URL"],
}
THEIRS = (("run", "--attach", "URL", "hi"), ("attach", "URL"))
SDK = """
const [place, baseUrl] = process.argv.slice(1)
const { createOpencodeClient } = await import(place + "/dist/client.js")
const { stream } = await createOpencodeClient({ baseUrl }).event.subscribe()
for await (const event of stream) console.log(event.type)
"""


def begun(relay: Relay, server: Served, command: list[str], env: dict[str, str]) -> list[str]:
    """The codings of the streams that a program in a terminal has begun."""
    ours, theirs = pty.openpty()
    words = [relay.url if word == "URL" else word for word in command]
    with subprocess.Popen(
        words, cwd=server.directory, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        try:
            assert relay.begun.wait(STREAM_WITHIN_S), os.read(ours, 4000).decode(errors="replace")
        finally:
            process.kill()
            os.close(theirs)
            os.close(ours)
    return relay.codings


@pytest.mark.parametrize("program", OURS)
def test_our_own_clients_are_sent_compressed_streams(
    program: str, open_server: Served, tmp_path: Path
) -> None:
    env = {**open_server.env, "TERM": "xterm"}

    with relayed(open_server.url) as relay:
        codings = begun(relay, open_server, OURS[program], env)

    assert set(codings) == {"gzip"}


@pytest.mark.parametrize("version", SDKS)
def test_the_official_sdk_is_sent_compressed_streams(
    version: str, clients: Clients, open_server: Served, tmp_path: Path
) -> None:
    node = ["node", "--input-type=module", "-e", SDK, str(clients.sdk(version)), "URL"]

    with relayed(open_server.url) as relay:
        codings = begun(relay, open_server, node, environment(tmp_path / "client"))

    assert set(codings) == {"gzip"}


@pytest.mark.parametrize("words", THEIRS, ids=" ".join)
@pytest.mark.parametrize("version", TERMINALS)
def test_the_real_terminal_program_is_sent_compressed_streams(
    version: str, words: tuple[str, ...], clients: Clients, open_server: Served, tmp_path: Path
) -> None:
    env = environment(tmp_path / "client", TERM="xterm-256color")

    with relayed(open_server.url) as relay:
        codings = begun(relay, open_server, [str(clients.terminal(version)), *words], env)

    assert set(codings) == {"gzip"}
