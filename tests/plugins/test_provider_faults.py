"""The table of faults that every HTTP provider is held to, in each wire format of ours."""

from types import ModuleType
from typing import Any

import pytest

from pegboard.schema.config import Config, ProviderConfig
from pegboard.testing import check_provider_faults
from pegboard.testing.provider_faults import IDLE_S
from pegboard_plugins import anthropic, gemini, openai_compatible
from support.models.fault_frames import ClaudeFrames, GeminiFrames, ResponseFrames
from support.models.keyed import keys_of

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
        options = {"baseURL": url, "apiKey": "sk-secret-key", "timeout_s": IDLE_S}
        if name == "openai":
            options["wire"] = "responses"
        config = Config(provider={name: ProviderConfig(options=options)})
        registering = plugin.register_providers(config, {}, keys_of(config.provider))
        with pytest.raises(StopIteration) as registered:  # it waits for nothing
            registering.send(None)
        return next(each for each in registered.value.value if each.id == name)

    assert await check_provider_faults(make, frames, model=model) == ()
