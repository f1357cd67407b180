"""The official JavaScript client, unmodified: every call of tiers 1 and 2."""

import re
import subprocess
from pathlib import Path

import pytest

from served import Served
from wire.real_clients import SDKS, TERMINALS, Clients, environment

pytestmark = pytest.mark.timeout(240)
EXERCISER = Path(__file__).with_name("sdk_exerciser.mjs")
CALLS = 82
ABSENT = ("mcp.add (remote, unreachable)", "mcp.disconnect")
"""There is no MCP client."""


@pytest.mark.parametrize("version", SDKS)
def test_every_call_of_the_sdk_passes_but_those_for_mcp_servers(
    version: str, clients: Clients, document: Path, server: Served
) -> None:
    options = {
        "--base": server.url,
        "--sdk": str(clients.sdk(version)),
        "--openapi": str(document),
        "--tier": "3",
        "--password": server.token,
    }
    words = [word for pair in options.items() for word in pair]

    done = subprocess.run(
        ["node", str(EXERCISER), *words], capture_output=True, text=True, timeout=200, check=False
    )

    failed = re.findall(r"^FAIL t\d (.*?) {2,}", done.stdout, re.MULTILINE)
    assert tuple(failed) == ABSENT, done.stdout
    assert f"{CALLS} passed, {len(ABSENT)} failed" in done.stdout


@pytest.mark.parametrize("version", TERMINALS)
def test_a_headless_client_prints_the_whole_turn(
    version: str, clients: Clients, open_server: Served, tmp_path: Path
) -> None:
    env = environment(tmp_path / "client")  # the older one never gives a password here
    program = str(clients.terminal(version))
    command = [program, "run", "--attach", open_server.url, "--format", "json"]

    done = subprocess.run(
        [*command, "go;;%bash echo free-$((1+1));;"],
        cwd=open_server.directory,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "free-2" in done.stdout
    assert "All done after 1 tool result(s)." in done.stdout
