"""Keys of providers for tests: of the settings and variables that are given, and of no file."""

from collections.abc import Mapping

from pegboard.providers import Keys
from pegboard.schema.config import Config, ProviderConfig


def keys_of(
    settings: Mapping[str, ProviderConfig] | None = None, env: Mapping[str, str] | None = None
) -> Keys:
    """The look-up over the user's `provider` table and these variables."""
    config = Config(provider=dict(settings or {}))
    return Keys(config, env or {})
