"""The options of the provider, and facts about models that need no loading."""

from collections.abc import Mapping

import msgspec

from pegboard.schema.model import Model

ID = "local"
TINY_TOKENS = 16_384
"""A window up to this gets the short prompt, and few tools."""


class LocalOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's options.

    `models` maps names to GGUF files. `context` is the maximum window in tokens, and `threads` the
    number of CPU threads. If either is None, the plugin chooses the value.
    """

    models: Mapping[str, str] = {}
    context: int | None = None
    threads: int | None = None


def is_tiny(model: Model) -> bool:
    """Return whether a packaged model's window is too small for the whole system prompt."""
    return model.provider_id == ID and (model.limit.context or TINY_TOKENS + 1) <= TINY_TOKENS
