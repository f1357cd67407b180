"""OpenCode, the real program: a client of `pegboard mcp serve`, and its list of our servers."""

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from server_states import states_until

from support.wire.served import served
from wire.real_clients import TERMINALS, environment, installed
from wire.terminal import attached

HERE = Path(__file__).parent
WITHIN_S = 120

pytestmark = pytest.mark.long


async def test_the_model_of_opencode_has_our_agent_work(
    tmp_path: Path, command: tuple[str, ...], surroundings: Mapping[str, str], project: Path
) -> None:
    program = installed().terminal(TERMINALS[-1])
    own = json.loads(surroundings["PEGBOARD_CONFIG_CONTENT"])
    variables = {key: each for key, each in surroundings.items() if key.startswith("PEGBOARD_")}
    server = {"type": "local", "command": [*command], "environment": variables, "timeout": 60_000}
    config = {
        **{key: own[key] for key in ("model", "small_model", "provider")},
        "enabled_providers": ["fake"],
        "permission": {"*": "allow"},
        "mcp": {"pegboard": server},
    }
    inner = json.dumps({"prompt": "%write made.txt x"})
    env = environment(tmp_path / "opencode", OPENCODE_CONFIG_CONTENT=json.dumps(config))

    process = await asyncio.create_subprocess_exec(
        *(str(program), "run", "--format", "json"),
        cwd=project,
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    prompt = f"%tool pegboard_pegboard {inner}".encode()  # as an argument it would be quoted
    output, errors = await asyncio.wait_for(process.communicate(prompt), WITHIN_S)

    events = [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]
    calls = [each["part"] for each in events if each["type"] == "tool_use"]
    assert [each["tool"] for each in calls] == ["pegboard_pegboard"], errors.decode()[-2000:]
    assert calls[0]["state"]["status"] == "completed", calls
    assert (project / "made.txt").read_text() == "x"


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_the_terminal_of_opencode_lists_our_servers_and_turns_one_off_and_on(
    tmp_path: Path, model_port: int, raw_server: Callable[..., dict[str, Any]]
) -> None:
    program = installed().terminal(TERMINALS[-1])
    settings = {
        "plugin_paths": [str(HERE.parent / "pegboard_mcp")],
        "mcp": {"raw": raw_server(), "broken": raw_server("exit")},
    }
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "opencode.json").write_text(json.dumps(settings))
    env = {"PYTHONPATH": str(HERE.parent)}

    with served(tmp_path, model_port, env=env) as server, server.client() as client:
        states_until(client, lambda found: found["raw"]["status"] == "connected")
        places = {"directory": server.directory, "root": tmp_path / "client"}
        with attached(program, url=server.url, password=server.token, **places) as terminal:
            terminal.wait("Ask anything", within_s=WITHIN_S)
            terminal.settle(0.8, 8)
            terminal.slash("mcps")
            terminal.wait(r"broken failed\s+○ Disabled", within_s=WITHIN_S)
            terminal.wait(r"raw connected\s+✓ Enabled", within_s=WITHIN_S)
            terminal.write("raw")
            terminal.wait("broken failed", absent=True)
            terminal.press("Space")
            terminal.wait(r"raw disabled\s+○ Disabled", within_s=WITHIN_S)
            off = client.get("/mcp").json()["raw"]
            terminal.press("Space")
            terminal.wait(r"raw connected\s+✓ Enabled", within_s=WITHIN_S)
            on = client.get("/mcp").json()["raw"]

    assert (off, on) == ({"status": "disabled"}, {"status": "connected"})
