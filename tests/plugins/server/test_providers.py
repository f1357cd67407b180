"""The providers that clients offer."""

import json
from pathlib import Path

import pytest

from support.wire.served import served

LOCAL = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "http://127.0.0.1:1/v1", "apiKey": "k"},
    "models": {"m": {"limit": {"context": 1000, "output": 100}}},
}


@pytest.mark.parametrize(
    ("model", "names"), [("local/m", {"local"}), ("scripted/demo", {"local", "scripted"})]
)
def test_transcripts_are_offered_only_if_one_is_the_default_model(
    model_port: int, tmp_path: Path, model: str, names: set[str]
) -> None:
    config = {"model": model, "provider": {"local": LOCAL}}
    env = {"PEGBOARD_CONFIG_CONTENT": json.dumps(config)}
    with served(tmp_path, model_port, env=env) as server, server.client() as client:
        known = client.get("/provider").json()
        configured = client.get("/config/providers").json()

    assert {each["id"] for each in known["all"]} == names
    assert set(known["connected"]) == set(known["default"]) == names
    assert {each["id"] for each in configured["providers"]} == set(configured["default"]) == names
