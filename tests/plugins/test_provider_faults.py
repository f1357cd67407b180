"""The table of faults that every HTTP provider is held to, in each wire format of ours."""

from types import ModuleType
from typing import Any

import pytest

from fault_frames import ClaudeFrames, GeminiFrames, ResponseFrames
from keyed import keys_of
from pegboard.schema.config import Config, ProviderConfig
from pegboard_plugins import anthropic, gemini, openai_compatible

TABLE = pytest.importorskip("pegboard.testing.provider_faults", reason="there is no table yet")
TOLD_AT_ONCE = "a refused connection"
"""On this machine it is not tried again: nobody listens there, and the way out is told."""
PROVIDERS = [
    pytest.param(anthropic, "anthropic", "claude-sonnet-4-5", ClaudeFrames(), id="anthropic"),
    pytest.param(openai_compatible, "openai", "gpt-5", ResponseFrames(), id="responses"),
    pytest.param(gemini, "gemini", "gemini-3-pro", GeminiFrames(), id="gemini"),
]


@pytest.mark.parametrize(("plugin", "name", "model", "frames"), PROVIDERS)
async def test_each_provider_holds_the_table(
    plugin: ModuleType, name: str, model: str, frames: Any
) -> None:
    def make(url: str) -> Any:
        options = {"baseURL": url, "apiKey": "sk-secret-key", "timeout_s": TABLE.IDLE_S}
        if name == "openai":
            options["wire"] = "responses"
        config = Config(provider={name: ProviderConfig(options=options)})
        registering = plugin.register_providers(config, {}, keys_of(config.provider))
        with pytest.raises(StopIteration) as registered:  # it waits for nothing
            registering.send(None)
        return next(each for each in registered.value.value if each.id == name)

    found = await TABLE.check_provider_faults(make, frames, model=model)

    assert [each for each in found if each.rule != TOLD_AT_ONCE] == []
