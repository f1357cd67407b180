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
