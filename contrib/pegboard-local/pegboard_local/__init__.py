"""The provider `local`: a language model on this machine's CPU, without an API key or a network.

The model runs in a separate process, which starts with the first request and ends with the App. The
process and its libraries are loaded only then.
"""

import msgspec

from pegboard import hookimpl
from pegboard.providers import ModelRequest, Provider
from pegboard.schema.config import Config, PluginConfig
from pegboard.schema.model import Model
from pegboard_local.settings import ID, is_tiny
from pegboard_local.settings import LocalOptions as LocalOptions

options = LocalOptions


@hookimpl
async def register_providers(config: Config) -> tuple[Provider, ...]:
    """Return the provider `local`."""
    from pegboard_local.provider import Local

    said = config.plugins.get(ID, PluginConfig()).options
    return (Local(msgspec.convert(said, LocalOptions)),)


@hookimpl(trylast=True)
async def chat_system_transform(model: Model, system: tuple[str, ...]) -> tuple[str, ...] | None:
    """Shorten the system prompt for a model with a tiny context window."""
    if not is_tiny(model):
        return None
    from pegboard_local.prompt import shortened

    return shortened(system)


@hookimpl
async def chat_params(request: ModelRequest) -> ModelRequest | None:
    """Remove most built-in tools from a request to a model with a tiny context window."""
    if not is_tiny(request.model):
        return None
    from pegboard_local.prompt import LEFT_OUT

    return request.without(*LEFT_OUT)
