"""The masking of keys from the environment and the configuration, in every response.

Settings may take a value from a variable or a file, so a key may occur anywhere in them.
"""

import os
from typing import Any

from pegboard import App
from pegboard.schema.wire import to_json
from pegboard.unstable import secret_values

MASK = "•••"


def without_keys(app: App, value: object) -> Any:  # noqa: ANN401 - JSON leaves here
    """Return a value as JSON, with each key from the environment or configuration masked."""
    return _mask(to_json(value), app.keys.values())


def mask_text(text: str) -> str:
    """Mask each key from the environment in the text of an error."""
    return str(_mask(text, secret_values(os.environ)))


def _mask(value: Any, secrets: tuple[str, ...]) -> Any:  # noqa: ANN401 - JSON of any shape
    if isinstance(value, dict):
        return {_mask(key, secrets): _mask(each, secrets) for key, each in value.items()}
    if isinstance(value, list):
        return [_mask(each, secrets) for each in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
    return value
