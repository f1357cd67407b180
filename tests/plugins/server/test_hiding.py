"""Keys: kept whole when many are set at once, and told to nobody."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pegboard_plugins.server.configuration import unmasked
from pegboard_plugins.server.keys import Keys
from served import served

KEY = "acme-0123456789"


def test_keys_that_are_set_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "data" / "auth.json"
    servers = (Keys(path), Keys(path))
    names = [f"p{at}" for at in range(40)]

    with ThreadPoolExecutor(8) as threads:
        for at, name in enumerate(names):
            threads.submit(servers[at % 2].put, name, {"type": "api", "key": name})
    servers[0].drop("p0")

    expected = {name: {"options": {"apiKey": name}} for name in names[1:]}
    assert servers[1].overlay() == {"provider": expected}
    assert {each.name for each in path.parent.iterdir()} == {"auth.json", "auth.json.lock"}


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

    assert unmasked(read) == {"agent": {"a": {"prompt": "y"}}}
