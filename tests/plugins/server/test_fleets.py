"""Servers of a fleet, whose membership a plugin has: the hook, and who is let in."""

import hashlib
import hmac
import json
from pathlib import Path

import httpx
import pytest

from support.wire.served import served

ALONE = """
from pathlib import Path

from pegboard import hookimpl

class Alone:
    def __init__(self, server):
        self.file = Path(__file__).with_name("joined")
        self.file.write_text(f"{server.id} {server.url}")

    async def add(self, app):
        pass

    async def owner(self, session_id):
        return None

    async def others(self):
        return ()

    async def aclose(self):
        self.file.unlink()

@hookimpl(optionalhook=True)
async def join_fleet(server):
    return Alone(server)
"""


@pytest.mark.fires("join_fleet")
def test_a_server_joins_the_fleet_of_a_plugin_whose_servers_it_lets_in(model_port, tmp_path):
    file: Path = tmp_path / "config" / "plugin" / "alone.py"
    file.parent.mkdir(parents=True)
    file.write_text(ALONE)
    (tmp_path / "config" / "pegboard.toml").write_text(f"plugin_paths = [{json.dumps(str(file))}]")
    (secret := tmp_path / "secret").write_text("0123456789abcdef" * 2)
    secret.chmod(0o600)

    with served(tmp_path, model_port, "--fleet", str(secret)) as server:
        id_, url = file.with_name("joined").read_text().split()
        word = f"pegboard server {id_}".encode()
        token = hmac.new(secret.read_bytes(), word, hashlib.sha256).hexdigest()
        known, stranger = (
            httpx.get(f"{server.url}/session", headers={"authorization": f"Bearer {each}"})
            for each in (token, token[::-1])
        )
        with server.client() as client:
            made = client.post("/session", json={}).json()
            found = client.get(f"/session/{made['id']}").json()

    assert url == server.url
    assert (known.status_code, stranger.status_code) == (200, 401)
    assert found["id"] == made["id"]
    assert not file.with_name("joined").exists()
