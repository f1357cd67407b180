"""JSON output with all control characters and invisible characters escaped."""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])

# What is no printable letter beyond ASCII's controls: C1, marks of format and direction,
# separators of lines, halves of letters, and tags. A text: to compile it takes 0.4 ms, which
# no run without JSON pays.
_UNSEEN = (
    "[\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e007f]"
)


def format_option(plain: str, *, default: str = "") -> Callable[[_Command], _Command]:
    """Add the option `--format` to a command: `json`, or `plain`, which is `text` or `table`."""
    return click.option(
        "--format",
        "style",
        type=click.Choice([plain, "json"]),
        default=default or plain,
        show_default=True,
        help="A table for people, or JSON.",
    )


def as_json(value: Any, *, indent: int | None = None) -> str:  # noqa: ANN401 - JSON
    r"""Return the value as JSON, with all control and invisible characters escaped.

    For example, the right-to-left override becomes `\u202e`, which JSON parsers decode. A date or
    time of TOML becomes a string.
    """
    return _escape(json.dumps(value, indent=indent, ensure_ascii=False, default=str))


def schema_json(value: object) -> str:
    """Return a struct of the protocol as indented JSON, with the escapes of `as_json`."""
    import msgspec  # `--help` does without it

    return _escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _escape(text: str) -> str:
    return re.sub(_UNSEEN, lambda found: json.dumps(found[0])[1:-1], text)
