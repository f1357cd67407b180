"""What clients are told of servers of tools, and have them do."""

import json
from pathlib import Path

import pytest

from support.wire.served import served

PLUGIN = """
from pegboard import hookimpl
from pegboard.errors import InvalidInputError
from pegboard.schema.config import Service

STATES = {
    "idle": "ready", "up": "running", "off": "disabled", "down": "failed", "new": "changed",
    "slow": "starting", "locked": "needs_auth", "unknown": "needs_registration",
}
DONE = []

@hookimpl
async def services(app):
    return [
        Service(kind="mcp", name=name, state=state, error="it ended" if name == "down" else "")
        for name, state in STATES.items()
    ] + [Service(kind="lsp", name="other", state="running")]

@hookimpl
async def service_action(kind, name, action, data):
    assert kind == "mcp"
    if action == "resources":
        return {"up:page": {"name": "page", "uri": "x://page", "client": "up"}}
    if action == "add":
        STATES[name] = "running"
        return {}
    if name not in STATES:
        return None
    if action == "auth":
        if name != "locked":
            raise InvalidInputError(f"{name} has no sign-in")
        return {"authorizationUrl": "https://sign.in/", "oauthState": "s"}
    if action == "auth_callback":
        assert data == {"code": "c"}
    STATES[name] = "disabled" if action == "disconnect" else "running"
    return {}
"""


@pytest.mark.fires("service_action")
def test_a_client_sees_and_moves_the_servers_of_a_plugin(model_port: int, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "plugin"
    folder.mkdir(parents=True)
    (folder / "connecting.py").write_text(PLUGIN)
    paths = json.dumps([str(folder / "connecting.py")])
    (tmp_path / "config" / "pegboard.toml").write_text(f"plugin_paths = {paths}\n")

    with served(tmp_path, model_port) as server, server.client() as client:
        before = client.get("/mcp").json()
        resources = client.get("/experimental/resource").json()
        begun = client.post("/mcp/locked/auth").json()
        refused = client.post("/mcp/up/auth")
        signed_in = client.post("/mcp/locked/auth/callback", json={"code": "c"}).json()
        moved = [client.post("/mcp/up/disconnect").json(), client.post("/mcp/off/connect").json()]
        added = client.post("/mcp", json={"name": "late", "config": {"type": "local"}}).json()
        missing = client.post("/mcp/none/connect")
        gone = client.delete("/mcp/locked/auth").json()

    connected = {"status": "connected"}
    assert before == {
        "idle": connected,
        "up": connected,
        "off": {"status": "disabled"},
        "down": {"status": "failed", "error": "it ended"},
        "new": {"status": "failed", "error": "changed"},
        "slow": {"status": "disabled"},
        "locked": {"status": "needs_auth"},
        "unknown": {"status": "needs_client_registration", "error": "needs_registration"},
    }
    assert list(resources) == ["up:page"]
    assert begun == {"authorizationUrl": "https://sign.in/", "oauthState": "s"}
    assert (refused.status_code, refused.json()["name"]) == (400, "BadRequest")
    assert signed_in == connected
    assert moved == [True, True]
    assert (added["late"], added["up"], added["off"]) == (
        connected,
        {"status": "disabled"},
        connected,
    )
    assert (missing.status_code, missing.json()["_tag"]) == (404, "McpServerNotFoundError")
    assert gone == {"success": True}


def test_without_a_plugin_there_is_no_server(client) -> None:
    assert client.get("/mcp").json() == {}
    assert client.get("/experimental/resource").json() == {}
    assert client.post("/mcp/x/connect").json()["_tag"] == "McpServerNotFoundError"
