"""The keys and tokens of providers that clients set."""

import json

import pytest

from pegboard_plugins.server.keys import Keys

LATER_MS = 10**15
"""Long after this test."""


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
    ("credential", "key"),
    [
        ({"type": "api", "key": "k"}, "k"),
        ({"type": "wellknown", "key": "COMPANY_TOKEN", "token": "t"}, "t"),
        ({"type": "oauth", "refresh": "r", "access": "a", "expires": LATER_MS}, "a"),
        ({"type": "oauth", "refresh": "r", "access": "a", "expires": 0}, "a"),
        ({"type": "oauth", "refresh": "r", "access": "a", "expires": 1}, None),
    ],
)
def test_what_was_signed_in_with_opens_the_provider_until_it_ends(server, client, credential, key):
    kept = client.put("/auth/fake", json=credential)
    overlay = Keys(server.places / "data" / "auth.json").overlay()
    client.delete("/auth/fake")

    assert (kept.status_code, kept.json()) == (200, True)
    assert overlay == ({"provider": {"fake": {"options": {"apiKey": key}}}} if key else {})


DAMAGED = b'{"anthropic":{"type":"api","key":"their-secret"},"gro'


@pytest.mark.parametrize("content", [DAMAGED, b"\xff\x00", b"[]", b'{"anthropic": "their-secret"}'])
def test_a_damaged_file_is_kept_beside_the_new_one_and_said(server, client, content):
    file = server.places / "data" / "auth.json"
    file.write_bytes(content)

    dropped = client.delete("/auth/unknown")
    assert (dropped.status_code, file.read_bytes()) == (200, content)
    kept = client.put("/auth/groq", json={"type": "api", "key": "another-secret"})

    [aside] = file.parent.glob("auth.json.damaged-*")
    assert (kept.status_code, aside.read_bytes()) == (200, content)
    assert aside.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text()) == {"groq": {"type": "api", "key": "another-secret"}}
    assert str(aside) in (server.places / "server.log").read_text()
    aside.unlink()
    client.delete("/auth/groq")


def test_damaged_keys_are_said_by_who_reads_them(tmp_path, caplog):
    file = tmp_path / "auth.json"
    file.write_bytes(DAMAGED)

    assert Keys(file).overlay() == {}
    [message] = caplog.messages
    assert f"{file} is damaged" in message
    assert "their-secret" not in message
