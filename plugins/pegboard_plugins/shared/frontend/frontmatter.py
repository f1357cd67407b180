"""Front matter: the settings at the start of a Markdown file."""

import re
from typing import Any

LONGEST_SETTINGS = 16 * 1024
"""The maximum length of settings in characters, which YAML parses in 0.1 s."""
MOST_BRACKETS = 100
"""The maximum number of brackets, because YAML's time is quadratic in their nesting."""
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)(.*)", re.DOTALL | re.MULTILINE)

_COMMA = re.compile(r",(?![^{]*\})")
"""A comma outside of the braces of a pattern."""


def front_matter(text: str) -> tuple[dict[str, Any] | None, str]:
    """Split a Markdown text into its front matter, or None without one, and its body.

    All scalar values are strings: YAML's dates and numbers are not converted.
    """
    parts = _FRONT.match(text)
    return (_settings(parts[1]), parts[2]) if parts else (None, text)


def _settings(front: str) -> dict[str, Any]:
    import yaml  # 20 ms that only a project with such files costs

    if len(front) > LONGEST_SETTINGS:
        return {}
    if front.count("[") + front.count("{") > MOST_BRACKETS:
        return _pairs(front)
    try:
        value = yaml.BaseLoader(front).get_single_data()
    except (yaml.YAMLError, RecursionError):
        # An unquoted text with a colon is no YAML, and it is how people write descriptions.
        return _pairs(front)
    return value if isinstance(value, dict) else {}


def _pairs(front: str) -> dict[str, Any]:
    pairs = (line.split(":", 1) for line in front.splitlines() if ":" in line)
    return {key.strip(): text.strip() for key, text in pairs}


def listed(value: object) -> tuple[str, ...]:
    """Return the names that a setting lists, as a YAML list or a comma-separated string."""
    if isinstance(value, str):
        return tuple(name for each in _COMMA.split(value) if (name := each.strip().strip("\"'")))
    return tuple(filter(None, map(str, value))) if isinstance(value, list) else ()
