"""OpenCode, the real program, as a client of `pegboard mcp serve`."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from wire.real_clients import TERMINALS, environment, installed

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
