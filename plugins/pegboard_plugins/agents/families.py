"""Which family a model belongs to, told by its name: families want to be told different things."""

import re
from typing import Literal

from pegboard.schema.model import Model

Family = Literal["gpt", "claude", "gemini", "open_weights", "small"]

_BILLIONS = re.compile(r"(?<![\w.])(?:e)?(\d+(?:\.\d+)?)b(?![a-z0-9])")
_SMALL_BELOW = 10.0
"""Billions of parameters."""
_OPEN = re.compile(
    r"qwen|qwq|glm|deepseek|kimi|llama|mistral|mixtral|devstral|codestral|gemma|phi-?\d|granite"
    r"|minimax|gpt-oss|nemotron|starcoder|command-r|olmo|ernie|hermes"
)
_NAMES: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("open_weights", _OPEN),
    ("claude", re.compile(r"claude|(?:^|[/-])(?:sonnet|opus|haiku)")),
    ("gemini", re.compile(r"gemini")),
    ("gpt", re.compile(r"gpt-|codex|(?:^|/)o\d")),
)


def family(model: Model) -> Family | None:
    """The model's family, None for a name that says nothing.

    A name that gives fewer than ten billion parameters (`qwen3:4b`, `llama-3.2-3b`) is of the
    small ones, whoever made it; of a mixture (`30b-a3b`) the whole counts.
    """
    name = (model.api.id or model.id).lower()
    sizes = [float(found) for found in _BILLIONS.findall(name)]
    if sizes and max(sizes) < _SMALL_BELOW:
        return "small"
    return next((known for known, pattern in _NAMES if pattern.search(name)), None)
