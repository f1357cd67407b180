"""Keys: told to nobody."""

from pathlib import Path

from pegboard_plugins.server.configuration import drop_masks
from support.wire.served import served

KEY = "acme-0123456789"


def test_a_key_of_the_environment_is_masked_wherever_settings_name_it(
    model_port: int, tmp_path: Path
) -> None:
    taken = "{env:ACME_API_KEY}"
    settings = {
        "username": taken,
        "agent": {"a": {"prompt": f"use {taken}", "description": taken}},
        "command": {"c": {"template": taken}},
        "provider": {"fake": {"name": taken}},
    }
    with (
        served(tmp_path, model_port, env={"ACME_API_KEY": KEY}) as server,
        server.client() as client,
    ):
        answers = [
            client.patch("/config", json=settings),
            *(client.get(path) for path in ("/config", "/agent", "/command", "/provider")),
            client.get("/config/providers"),
        ]
        refused = client.patch("/config", json={"permission": taken})

    assert [answer.status_code for answer in answers] == [200] * 6
    assert refused.status_code == 400
    assert [each.request.url.path for each in (*answers, refused) if KEY in each.text] == []
    assert answers[1].json()["username"] == "•••"
    assert answers[1].json()["agent"]["a"]["prompt"] == "use •••"


def test_nothing_that_was_masked_is_written_back() -> None:
    read = {"username": "eve •••", "agent": {"•••": {"prompt": "x"}, "a": {"prompt": "y"}}}

    assert drop_masks(read) == {"agent": {"a": {"prompt": "y"}}}
