"""The values of settings by dotted key, with their sources and with secrets masked."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pegboard.cli import open_app
from pegboard.schema.wire import to_json
from pegboard.unstable import without_passwords
from pegboard_plugins.cli.explained import BUILT_IN

MASK = "•••"
RULES = frozenset({"permission", "project_permission"})
_SECRET_WORDS = ("key", "token", "secret", "password", "authorization", "credential", "cookie")
_NOT_SECRET = frozenset({"tokens", "max_tokens", "keyring"})


async def settings_of(directory: Path) -> list[tuple[str, Any, str]]:
    """Return the keys, values and sources of all settings; built-in rules come first."""
    async with open_app(directory) as app:
        values = to_json(app.config)
        defaults = _defaults(values, to_json(app.config_sources.config))
        said = [
            (
                key,
                masked(key, value, app.plugins.secret_keys),
                source_of(key, app.config_sources.sources),
            )
            for key, value in leaves(values)
            if value or key not in RULES
        ]
        return [*((key, rules, whose) for (key, whose), rules in defaults.items()), *said]


def _defaults(
    values: dict[str, Any], loaded: Mapping[str, Any]
) -> dict[tuple[str, str], list[Any]]:
    """Remove the rules from `values` that no configuration file contains, and return them.

    They are the built-in permission rules, by key and source. `loaded` is the content of the
    configuration files.
    """
    found: dict[tuple[str, str], list[Any]] = {}
    for key in sorted(RULES & values.keys()):
        written = loaded.get(key) or []
        others = [rule for rule in values[key] if rule not in written]
        values[key] = [rule for rule in values[key] if rule in written]
        for rule in others:
            found.setdefault((key, rule.pop("by", BUILT_IN)), []).append(rule)
    return found


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value that is not a table, with its dotted key."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from leaves(value, f"{key}.")
        else:
            yield key, value


def source_of(key: str, sources: Mapping[str, str]) -> str:
    """Return the file that sets the key or a table around it, or the files that set keys in it."""
    parts = key.split(".")
    for end in range(len(parts), 0, -1):
        if found := sources.get(".".join(parts[:end])):
            return found
    inside = sorted({file for name, file in sources.items() if name.startswith(f"{key}.")})
    return ", ".join(inside) or BUILT_IN


def masked(key: str, value: object, secret_keys: Collection[str] = ()) -> object:
    """Mask a value if its key names a secret; `secret_keys` are further secret keys."""
    if value and any(f"{key}.".startswith(f"{each}.") for each in secret_keys):
        return MASK
    name = key.rpartition(".")[2].lower()
    is_secret = any(word in name for word in _SECRET_WORDS) and name not in _NOT_SECRET
    in_headers = ".headers." in f".{key.lower()}"
    if isinstance(value, str) and value and (is_secret or in_headers):
        return MASK
    return without_passwords(value) if isinstance(value, str) else value
