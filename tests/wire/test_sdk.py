"""The official JavaScript client, unmodified: every call of tiers 1 and 2."""

import json
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.wire.served import Served, model, served
from wire.real_clients import SDKS, TERMINALS, Clients, environment

pytestmark = pytest.mark.timeout(240)
EXERCISER = Path(__file__).with_name("sdk_exerciser.mjs")
CALLS = 82
ABSENT = ("mcp.add (remote, unreachable)", "mcp.disconnect")
"""There is no MCP client without the plugin."""
PLUGIN = Path(__file__).parents[2] / "contrib" / "pegboard-mcp"


@pytest.mark.parametrize("version", SDKS)
def test_every_call_of_the_sdk_passes_but_those_for_mcp_servers(
    version: str, clients: Clients, document: Path, server: Served
) -> None:
    output = exercised(server, clients.sdk(version), document)

    assert failed_calls(output) == ABSENT, output
    assert f"{CALLS} passed, {len(ABSENT)} failed" in output


@pytest.mark.skipif(find_spec("mcp") is None, reason="the SDK of MCP is not installed")
@pytest.mark.parametrize("version", SDKS)
def test_with_the_plugin_for_mcp_servers_every_call_of_the_sdk_passes(
    version: str, clients: Clients, document: Path, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    settings = {"plugin_paths": [str(PLUGIN / "pegboard_mcp")]}
    (tmp_path / "config" / "opencode.json").write_text(json.dumps(settings))

    with model() as port, served(tmp_path, port, env={"PYTHONPATH": str(PLUGIN)}) as server:
        output = exercised(server, clients.sdk(version), document)

    assert failed_calls(output) == (), output
    assert f"{CALLS + len(ABSENT)} passed, 0 failed" in output


def exercised(server: Served, sdk: Path, document: Path) -> str:
    """Return what the exerciser says of a server."""
    options = {
        "--base": server.url,
        "--sdk": str(sdk),
        "--openapi": str(document),
        "--tier": "3",
        "--password": server.token,
    }
    words = [word for pair in options.items() for word in pair]
    done = subprocess.run(
        ["node", str(EXERCISER), *words], capture_output=True, text=True, timeout=200, check=False
    )
    return done.stdout


def failed_calls(output: str) -> tuple[str, ...]:
    """Return the names of the calls that failed."""
    return tuple(re.findall(r"^FAIL t\d (.*?) {2,}", output, re.MULTILINE))


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
