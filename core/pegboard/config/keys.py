"""The keys of config files: their conversion to the schema, and the merge of all sources.

The conversion handles old spellings, rules and paths. The merge records the source of each key and
checks all values against the schema.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePath
from typing import Any, get_args, get_origin

import msgspec

from pegboard.config.layer import Layer, expanded
from pegboard.errors import ConfigError
from pegboard.kit.hosts import KEY as NETWORK
from pegboard.kit.hosts import host_pattern
from pegboard.kit.suggestions import nearest_names
from pegboard.policy.permissions import rules_from_config
from pegboard.schema.config import AgentConfig, Config
from pegboard.schema.session import EDIT, EDIT_SWITCHES, Rule

_OPENCODES = ("command", "provider", "plugins", "formatter", "lsp", "compaction", "retry", "budget")
"""Tables of a file made for OpenCode that may have keys which mean nothing here."""
# What OpenCode's files may say and has no meaning here.
_FOREIGN = frozenset(
    {
        *("$schema", "autoshare", "autoupdate", "enterprise", "experimental"),
        *("keybinds", "layout", "logLevel", "plugin", "server", "share"),
        *("skills", "theme", "tui", "watcher"),
    }
)
_WITH_EFFECT = ("plugin", "experimental", "skills")
"""Keys of `_FOREIGN` with which OpenCode runs or finds more than Pegboard does."""

_UNSET = frozenset({"project_permission", "project_mcp", "rulesets", "approvals"})
"""Fields that no file sets: a project's settings of the shorter name, and those of plugins."""

_CONTINUE = "continue_loop_on_deny"
"""A key of `experimental` in OpenCode's files, and a setting of Pegboard's own."""


def normalised(
    layer: Layer, value: Mapping[str, Any], *, home: Path, folder: Path
) -> dict[str, Any]:
    """Convert the layer's value, with its references replaced, to the schema's keys.

    A `permission` becomes a list of rules, `plugin_paths` become absolute, and `~` is expanded.

    :raises ConfigError: for an unknown key of Pegboard's own files, and for an invalid table or
      permission.
    """
    known = _translated(layer, value) if layer.syntax == "opencode" else dict(value)
    _check_keys(layer, known, Config, "")
    return _with_paths(layer, _with_hosts(layer, _with_rules(layer, known)), home, folder)


class _Inner(msgspec.Struct, frozen=True):
    """The type of a configuration table that is nested in another one.

    If `is_named` is set, the table contains tables of type `kind` by name, as `agent.NAME` does.
    Otherwise the table itself has the type `kind`.
    """

    kind: type[msgspec.Struct]
    is_named: bool


@cache
def _tables(kind: type[msgspec.Struct]) -> Mapping[str, _Inner]:
    found = {}
    for field in msgspec.structs.fields(kind):
        inner = get_args(field.type)[-1] if get_origin(field.type) is dict else field.type
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            found[field.name] = _Inner(inner, inner is not field.type)
    return found


def is_named(table: str) -> bool:
    """Return whether a table contains tables by a name that users choose, as `agent.NAME` does."""
    found = _tables(Config).get(table)
    return found is not None and found.is_named


def _check_keys(
    layer: Layer, table: Mapping[str, Any], kind: type[msgspec.Struct], prefix: str
) -> None:
    fields = set(kind.__struct_fields__) - _UNSET
    for name, entry in table.items():
        key = f"{prefix}{name}"
        if name not in fields:
            meant = nearest_names(str(name), fields, limit=1)
            known = f"known are {', '.join(sorted(fields))}"
            hint = f"did you mean {meant[0]}?" if meant else known
            raise layer.error(f"unknown key; {hint}", key)
        if inner := _tables(kind).get(name):
            entries = _table(layer, entry, key)
            inside = {f"{key}.{each}": value for each, value in entries.items()}
            for place, value in (inside if inner.is_named else {key: entry}).items():
                _check_keys(layer, _table(layer, value, place), inner.kind, f"{place}.")


def _table(layer: Layer, value: object, key: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise layer.error("must be a table of keys and values", key)
    return value


def _with_rules(layer: Layer, value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Replace the `permission` of a value, and of each agent in the value, by a list of rules."""
    if "permission" in value:
        value["permission"] = _rules(layer, value["permission"], f"{prefix}permission")
    if "agent" in value:
        agents = _table(layer, value["agent"], "agent").items()
        value["agent"] = {
            name: _with_rules(layer, dict(_table(layer, entry, f"agent.{name}")), f"agent.{name}.")
            for name, entry in agents
        }
    return value


def _rules(layer: Layer, value: object, key: str) -> list[dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return value
    try:
        rules = rules_from_config(value)
    except ConfigError as error:
        deeper = f"{key}.{error.key}" if error.key else key
        raise layer.error(str(error).removeprefix(f"{error.key}: "), deeper) from error
    return _plain(rules)


def _plain(rules: tuple[Rule, ...]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(rule) for rule in rules]


def _with_hosts(layer: Layer, value: dict[str, Any]) -> dict[str, Any]:
    """Normalise the hosts of a list; an empty list means no network."""
    hosts = value.get(NETWORK)
    if not isinstance(hosts, list | tuple):
        return value
    if odd := [each for each in hosts if not isinstance(each, str)]:
        raise layer.error(f"{odd[0]!r} is no text, and hosts are", NETWORK)
    try:
        known = [str(host_pattern(each)) for each in hosts]
    except ConfigError as error:
        raise layer.error(str(error).removeprefix(f"{NETWORK}: "), NETWORK) from error
    return {**value, NETWORK: list(dict.fromkeys(known)) or False}


def _with_paths(layer: Layer, value: dict[str, Any], home: Path, folder: Path) -> dict[str, Any]:
    """Make paths absolute; leave entries of the wrong type, which the type check reports later."""
    if isinstance(given := value.get("instructions"), list | tuple):
        value["instructions"] = [_pattern(layer, entry, home) for entry in given]
    if isinstance(given := value.get("plugin_paths"), list | tuple):
        value["plugin_paths"] = [
            str(folder / expanded(entry, home)) if isinstance(entry, str) else entry
            for entry in given
        ]
    return value


def _pattern(layer: Layer, entry: object, home: Path) -> object:
    """Expand `~` in an entry of the setting `instructions`."""
    if not isinstance(entry, str):
        return entry
    if not entry or any("**" in part and part != "**" for part in PurePath(entry).parts):
        raise layer.error("`**` must stand alone between slashes", "instructions")
    return expanded(entry, home)


def _translated(layer: Layer, value: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the value of an OpenCode file, without the keys that Pegboard ignores."""
    known = {
        name: entry
        for name, entry in value.items()
        if name in Config.__struct_fields__ and name not in _UNSET
    }
    agents = {
        name: {**_table(layer, entry, f"mode.{name}"), "mode": "primary"}
        for name, entry in _table(layer, value.get("mode"), "mode").items()
    }
    agents.update(_table(layer, known.get("agent"), "agent"))
    if agents:
        known["agent"] = {name: _agent(layer, name, entry) for name, entry in agents.items()}
    experimental = value.get("experimental")
    if isinstance(experimental, Mapping) and _CONTINUE in experimental:
        known[_CONTINUE] = experimental[_CONTINUE]
    known = _with_switches(layer, known)
    for name in filter(known.__contains__, _OPENCODES):
        kind, entry = _tables(Config)[name], _table(layer, known[name], name)
        fields = kind.kind.__struct_fields__
        known[name] = _only(fields, entry)
        if kind.is_named:
            known[name] = {
                each: _only(fields, _table(layer, inner, f"{name}.{each}"))
                for each, inner in entry.items()
            }
    return _with_tools(layer, known, value.get("tools"), "")


def _with_switches(layer: Layer, known: dict[str, Any]) -> dict[str, Any]:
    """Disable the plugins of `formatter` and `lsp` if these are `false`."""
    for table, plugin in (("formatter", "format"), ("lsp", "lsp")):
        if isinstance(known.get(table), bool):
            enabled = known.pop(table)
            plugins = _table(layer, known.get("plugins"), "plugins")
            known["plugins"] = {**plugins, plugin: {"enabled": enabled}}
    return known


def _only(fields: tuple[str, ...], table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in table.items() if name in fields}


def _agent(layer: Layer, name: str, entry: object) -> dict[str, Any]:
    """Convert an OpenCode agent; keys unknown to OpenCode are options for the provider."""
    table = dict(_table(layer, entry, f"agent.{name}"))
    tools = table.pop("tools", None)
    steps = table.pop("maxSteps", None)
    table.pop("name", None)
    if steps is not None:
        table.setdefault("steps", steps)
    fields = set(AgentConfig.__struct_fields__) - _UNSET
    options = {key: table.pop(key) for key in list(table) if key not in fields}
    if options:
        given = _table(layer, table.get("options"), f"agent.{name}.options")
        table["options"] = {**options, **given}
    return _with_tools(layer, table, tools, f"agent.{name}.")


def _with_tools(layer: Layer, table: dict[str, Any], tools: object, prefix: str) -> dict[str, Any]:
    """Convert the old `tools` switches to rules, and put them before the rules of `permission`."""
    switches = _table(layer, tools, f"{prefix}tools")
    if switches:
        rules = tuple(
            Rule(EDIT if name in EDIT_SWITCHES else name, "*", "allow" if on else "deny")
            for name, on in switches.items()
        )
        own = _rules(layer, table.get("permission"), f"{prefix}permission")
        table["permission"] = [*_plain(rules), *own]
    return table


def unknown_keys(layer: Layer) -> tuple[str, ...]:
    """Return the top-level keys of an OpenCode file that neither OpenCode nor Pegboard knows."""
    if layer.syntax != "opencode":
        return ()
    known = {*_FOREIGN, *Config.__struct_fields__, "mode", "tools"}
    return tuple(name for name in layer.value if name not in known)


def unused_keys(layer: Layer) -> Iterator[str]:
    """Yield the settings of a file that OpenCode uses and Pegboard does not."""
    for name in _WITH_EFFECT:
        value = layer.value.get(name)
        if name == "experimental" and isinstance(value, Mapping):
            yield from (f"{name}.{each}" for each in value if each != _CONTINUE)
        elif value:
            yield name


_RULES = frozenset({"permission", "project_permission"})
_UNITED = frozenset({("instructions",), ("plugin_paths",)})
_WHOLE = frozenset({("mcp",), ("project_mcp",)})
"""Tables whose entries replace earlier ones as a whole, but for a switch alone."""
_PLACE = r" - at `\$\.?(.*)`$"
_AGENT_KEY_PARTS = 3

KeyPath = tuple[str, ...]


class Merged:
    """The merged values of all layers; later layers override, and tables are merged deeply.

    Rules are appended, so that a later source has precedence. `instructions` and `plugin_paths` are
    united. All other lists are replaced.
    """

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self._said: dict[KeyPath, Layer] = {}

    def lay(self, layer: Layer, value: Mapping[str, Any]) -> None:
        """Merge a layer's values, given with the schema's keys, over those of earlier layers."""
        self._lay(layer, self.value, value, ())

    def _lay(
        self, layer: Layer, below: dict[str, Any], above: Mapping[str, Any], at: KeyPath
    ) -> None:
        for name, entry in above.items():
            path = (*at, name)
            if isinstance(entry, Mapping):
                replaces = at in _WHOLE and entry.keys() != {"enabled"}
                if replaces or not isinstance(below.get(name), dict):
                    below[name] = {}
                self._said[path] = layer
                self._lay(layer, below[name], entry, path)
            else:
                below[name] = _joined(path, below.pop(name, None), entry)  # the last of its table
                self._said[path] = layer

    def sources(self) -> dict[str, str]:
        """Return the name of the source that set each dotted key last; tables only if empty."""
        return {
            ".".join(path): layer.name
            for path, layer in self._said.items()
            if not (isinstance(value := self._at(path), dict) and value)
        }

    def _at(self, path: KeyPath) -> object:
        value: object = self.value
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def error(self, message: str, path: KeyPath) -> ConfigError:
        """Return an error about a key, with the file and line of the source that set the key."""
        key = ".".join(path)
        for length in range(len(path), 0, -1):
            if path[:length] in self._said:
                return self._said[path[:length]].error(message, key)
        return ConfigError(message, key=key)

    def config(self) -> Config:
        """Convert the merged values of all layers to a `Config`.

        :raises ConfigError: for a value of the wrong type, with file and line.
        """
        fields = {field.name: field.type for field in msgspec.structs.fields(Config)}
        checked: dict[str, Any] = {}
        for name, entry in self.value.items():
            if is_named(name) and isinstance(entry, dict):
                kind = _tables(Config)[name].kind
                checked[name] = {
                    each: self._checked(value, kind, (name, each)) for each, value in entry.items()
                }
            else:
                checked[name] = self._checked(entry, fields[name], (name,))
        return Config(**checked)

    def _checked(self, value: object, kind: Any, path: KeyPath) -> Any:  # noqa: ANN401 - a type, and its value
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            text = str(error)
            place = re.search(_PLACE, text)
            message = re.sub(_PLACE, "", text).replace("`", "")
            deeper = place[1].partition("[")[0].split(".") if place else ()
            where = (*path, *filter(None, deeper))
            raise self.error(message[:1].lower() + message[1:], where) from error


def _joined(path: KeyPath, below: object, above: object) -> object:
    if not (isinstance(below, list) and isinstance(above, list)):
        return above
    if path[-1] in _RULES and (
        len(path) == 1 or (path[0], len(path)) == ("agent", _AGENT_KEY_PARTS)
    ):
        return [*below, *above]
    if path in _UNITED:  # each string once; another value is left to the check of types
        both = [*below, *above]
        strings = dict.fromkeys(each for each in both if isinstance(each, str))
        return [*strings, *(each for each in both if not isinstance(each, str))]
    return above
