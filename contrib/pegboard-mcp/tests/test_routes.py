"""The servers over HTTP, through the routes that clients of OpenCode use."""

import json
import time
from pathlib import Path

from served import model, served

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
        states = until(client, lambda found: found.get("broken", {}).get("status") == "failed")
        disconnected = client.post("/mcp/raw/disconnect").json()
        off = client.get("/mcp").json()["raw"]
        connected = client.post("/mcp/raw/connect").json()
        failed = client.post("/mcp/broken/connect")
        entry = {"type": "local", "command": raw_server()["command"]}
        added = client.post("/mcp", json={"name": "late", "config": entry}).json()
        no_sign_in = client.post("/mcp/raw/auth")
        unknown = client.post("/mcp/none/connect")

    assert states["raw"] == {"status": "connected"}
    assert "the configuration has no key" in states["broken"]["error"]
    assert (disconnected, connected) == (True, True)
    assert off == {"status": "disabled"}
    assert failed.json() is True
    assert added["late"] == {"status": "connected"}
    assert no_sign_in.status_code == 400
    assert unknown.status_code == 404


def until(client, condition):
    """Return the states of the servers once they are as wanted."""
    ends_at = time.monotonic() + 30
    while not condition(found := client.get("/mcp").json()):
        assert time.monotonic() < ends_at, found
        time.sleep(0.1)
    return found
