"""The servers over HTTP, through the routes that clients of OpenCode use."""

import json
from pathlib import Path

from server_states import states_until

from support.wire.served import model, served

HERE = Path(__file__).parent


def test_a_client_sees_connects_and_disconnects_servers(raw_server, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    settings = {
        "plugin_paths": [str(HERE.parent / "pegboard_mcp")],
        "mcp": {"raw": raw_server(), "broken": raw_server("exit")},
    }
    (config / "opencode.json").write_text(json.dumps(settings))

    env = {"PYTHONPATH": str(HERE.parent)}

    with model() as port, served(tmp_path, port, env=env) as server, server.client() as client:
        seen = states_until(
            client,
            lambda found: (
                (found["broken"]["status"], found["raw"]["status"]) == ("failed", "connected")
            ),
        )
        disconnected = client.post("/mcp/raw/disconnect").json()
        off = client.get("/mcp").json()["raw"]
        connected = client.post("/mcp/raw/connect").json()
        failed = client.post("/mcp/broken/connect")
        entry = {"type": "local", "command": raw_server()["command"]}
        added = client.post("/mcp", json={"name": "late", "config": entry}).json()
        no_sign_in = client.post("/mcp/raw/auth")
        unknown = client.post("/mcp/none/connect")

    assert {each["broken"]["status"] for each in seen} <= {"disabled", "failed"}
    assert "the configuration has no key" in seen[-1]["broken"]["error"]
    assert (disconnected, connected) == (True, True)
    assert off == {"status": "disabled"}
    assert failed.json() is True
    assert added["late"] == {"status": "connected"}
    assert no_sign_in.status_code == 400
    assert unknown.status_code == 404


def test_a_server_whose_first_start_is_under_way_is_not_connected(
    raw_server, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.mkdir()
    settings = {
        "plugin_paths": [str(HERE.parent / "pegboard_mcp")],
        "mcp": {"slow": raw_server("hang_start", connect_timeout_s=3600)},
    }
    (config / "opencode.json").write_text(json.dumps(settings))

    env = {"PYTHONPATH": str(HERE.parent)}

    with model() as port, served(tmp_path, port, env=env) as server, server.client() as client:
        states = client.get("/mcp").json()

    assert states == {"slow": {"status": "disabled"}}
