"""The options of the provider, and what is known of it before a model is loaded."""

from collections.abc import Mapping

import msgspec

from pegboard.schema.model import Model

ID = "local"
TINY_TOKENS = 16_384
"""A window up to this gets the short prompt, and few tools."""


class LocalOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's options.

    `models` gives names to GGUF files. `context` is the most tokens that a model's window is given
    memory for, `threads` how many it computes with; None lets the plugin choose.
    """

    models: Mapping[str, str] = {}
    context: int | None = None
    threads: int | None = None


def is_tiny(model: Model) -> bool:
    """Return whether a model is one of ours and its window too small for the whole prompt."""
    return model.provider_id == ID and (model.limit.context or TINY_TOKENS + 1) <= TINY_TOKENS
