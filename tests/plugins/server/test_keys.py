"""The keys and tokens of providers that clients set."""

import json

import pytest


def test_a_key_is_kept_for_its_owner_alone(server, client):
    kept = client.put("/auth/fake", json={"type": "api", "key": "another-secret"})
    file = server.places / "data" / "auth.json"
    mode, content = file.stat().st_mode & 0o777, json.loads(file.read_text())
    client.delete("/auth/fake")

    assert (kept.json(), mode) == (True, 0o600)
    assert content == {"fake": {"type": "api", "key": "another-secret"}}
    assert json.loads(file.read_text()) == {}
    assert client.put("/auth/..%2fx", json={"type": "api", "key": "k"}).status_code in {400, 404}


@pytest.mark.parametrize(
    "credential",
    [
        {"type": "wellknown", "key": "COMPANY_TOKEN", "token": "t"},
        {"type": "oauth", "refresh": "r", "access": "a", "expires": 0},
    ],
)
def test_what_a_client_signed_in_with_is_kept_as_it_is(server, client, credential):
    kept = client.put("/auth/fake", json=credential)
    content = json.loads((server.places / "data" / "auth.json").read_text())
    client.delete("/auth/fake")

    assert (kept.status_code, kept.json()) == (200, True)
    assert content == {"fake": credential}


def test_a_damaged_file_is_said_in_the_server_s_log(server, client):
    file = server.places / "data" / "auth.json"
    file.write_bytes(b"[]")

    kept = client.put("/auth/groq", json={"type": "api", "key": "another-secret"})

    [aside] = file.parent.glob("auth.json.damaged-*")
    assert (kept.status_code, aside.read_bytes()) == (200, b"[]")
    assert str(aside) in (server.places / "server.log").read_text()
    aside.unlink()
    client.delete("/auth/groq")
