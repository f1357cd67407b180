"""The settings that a project's own files may have: only stricter ones until it is trusted."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, get_args

from pegboard.config.layer import references, texts
from pegboard.kit.hosts import KEY as NETWORK
from pegboard.kit.hosts import tightened
from pegboard.schema.config import ProcessLimits, RunLimits, SandboxLevel

_Path = tuple[str, ...]

_USERS_ALONE = frozenset(
    {"auto_approve", "keyring", "permission_mode", "profile", "resume_on_restart"}
)
_OWN = {"permission": "project_permission", "mcp": "project_mcp"}
"""The keys whose values from a project are separate from the user's."""
_KEY_COMMAND = "key_command"
_NO_GUARDS = frozenset({"format", "lsp"})
"""Plugins that a project may switch off, as OpenCode's files do."""
_TIGHTENING = ("permission", "instructions", "agent")
_SANDBOX = get_args(SandboxLevel)
_ALLOW_COMMANDS = "sandbox_allow_commands"
_UNPRICED = "unpriced"
_OF_PROCESSES = ("sandbox", "limits", NETWORK, _ALLOW_COMMANDS)
_PASSED_ON = {
    "agent": frozenset({"prompt", "prompt_append", "description", "permission", "tools"}),
    "mode": frozenset({"prompt", "prompt_append", "description", "permission", "tools"}),
    "plugins": frozenset[str](),
    "provider": frozenset({"api", "options", "name", "npm", "env"}),
}
"""Tables whose entries are passed on, with the keys that are not, or are told of elsewhere."""
# Documents: so that no project has a `.env` or a key sent to the model before it is trusted.
_DOCUMENTS = frozenset({".md", ".mdc", ".rst", ".txt"})


def as_project(value: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the settings that count in a trusted project, and the keys that no project may set.

    A project may set everything except what would loosen the user's rules. It disables no plugin,
    because a plugin may be a guard. It names no command that prints keys and sets no effects of an
    agent. It may hide tools but not expose them.
    """
    ignored: list[_Path] = [(name,) for name in value if name in _USERS_ALONE]
    ignored += [
        ("plugins", name, "enabled")
        for name, entry in _entries(value, "plugins")
        if entry.get("enabled") is False and name not in _NO_GUARDS
    ]
    ignored += [
        ("agent", name, "effects") for name, entry in _entries(value, "agent") if "effects" in entry
    ]
    ignored += [
        ("provider", name, _KEY_COMMAND)
        for name, entry in _entries(value, "provider")
        if _KEY_COMMAND in entry
    ]
    ignored += [("exposure", name) for name in _exposed(value)]
    ignored += [
        ("agent", name, "exposure", each)
        for name, entry in _entries(value, "agent")
        for each in _exposed(entry)
    ]
    said = _renamed(_without(value, ignored))
    if "agent" in said:
        said["agent"] = {name: _renamed(entry) for name, entry in said["agent"].items()}
    return said, _dotted(ignored)


def redirections(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a line for each setting that sends the user's keys, variables or files elsewhere.

    `value` is the project's settings before references are replaced, so that no line has a secret.
    """
    sent = [line for name, entry in _entries(value, "provider") for line in _sent(name, entry)]
    others = ((name, entry) for name, entry in value.items() if name != "provider")
    told = [f"{text} goes into {name}" for name, entry in others for text in references(entry)]
    return (*sent, *told, *_addresses(value))


def _addresses(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each address in options of agents, models and plugins."""
    for table, wordy in _PASSED_ON.items():
        for name, entry in _entries(value, table):
            passed = {key: each for key, each in entry.items() if key not in wordy}
            found = dict.fromkeys(text for text in texts(passed) if "://" in text)
            yield from (f"{table}.{name} has the address {text}" for text in found)


def shown_before(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Return lines that the user must see before trusting a project.

    They are the lines of `redirections`, the models that would read the code, the addresses of
    providers with a key, and the MCP servers.
    """
    theirs = [
        f"what is asked of the provider {name} is sent to {url}"
        for name, entry in _entries(value, "provider")
        if (url := _url(entry)) and _table(entry, "options").get("apiKey")
    ]
    models = [f"{key} is {name}" for key, name in _models(value) if isinstance(name, str)]
    servers = [
        f"mcp.{name} may start or call {entry.get('command') or entry.get('url')}"
        for name, entry in _entries(value, "mcp")
    ]
    return (*redirections(value), *theirs, *models, *servers)


def _models(value: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield each model in the settings, with the key that names it; models receive the code."""
    yield from ((key, value.get(key)) for key in ("model", "small_model"))
    yield from ((f"models.{role}", name) for role, name in _table(value, "models").items())
    lists = {"fallback": value.get("fallback")}
    for name, entry in _entries(value, "provider"):
        lists[f"provider.{name}.fallback"] = entry.get("fallback")
    for key, names in lists.items():
        yield from ((key, name) for name in (names if isinstance(names, list) else ()))


def _url(entry: Mapping[str, Any]) -> object:
    return _table(entry, "options").get("baseURL") or entry.get("api")


def _sent(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    url = _url(entry)
    if url and not _table(entry, "options").get("apiKey"):
        yield f"the key of the provider {name} is sent to {url}"
    if proxy := _table(entry, "options").get("proxy"):
        yield f"requests to the provider {name} go through the proxy {proxy}"
    where = f"the provider {name}" + (f" at {url}" if url else "")
    variables = entry.get("env")
    for variable in variables if isinstance(variables, list) else ():
        yield f"the variable {variable} is the key of {where}"
    for reference in references(entry):
        yield f"{reference} is sent to {where}"


def tightening(value: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the settings that count in an untrusted project, and the keys that do not count.

    Rules count because they can only tighten. So do instruction files below the project. Models do
    not count, because they decide who reads the code. Plugin settings do not count either, because
    a disabled plugin may be the user's guard.
    """
    said = {name: value[name] for name in _OF_PROCESSES if name in value}
    ignored = [name for name in value if name not in (*_TIGHTENING, *said)]
    if "permission" in value:
        said["project_permission"] = value["permission"]
    agents = value.get("agent") or {}
    for name, entry in agents.items():
        if "permission" in entry:
            said.setdefault("agent", {})[name] = {"project_permission": entry["permission"]}
        if set(entry) - {"permission"}:
            ignored.append(f"agent.{name}")
    given = value.get("instructions")
    entries = given if isinstance(given, list) else ()
    inside = [entry for entry in entries if isinstance(entry, str) and _is_document_inside(entry)]
    if inside:
        said["instructions"] = inside
    if given and inside != given:
        ignored.append("instructions")
    return said, tuple(ignored)


def without_loosening(
    value: Mapping[str, Any], below: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Remove the project's settings that are looser than `below`, those of weaker sources.

    Return the other settings and the removed keys. This applies to the sandbox, the limits of
    processes, the user's budget, and facts of models that the user has set. An unknown sandbox
    level stays, for the type check to report.
    """
    looser: list[_Path] = [
        (name,) for name in (NETWORK, _ALLOW_COMMANDS) if value.get(name) is True
    ]
    level, before = value.get("sandbox"), below.get("sandbox", "off")
    known = level in _SANDBOX and before in _SANDBOX
    if known and _SANDBOX.index(level) < _SANDBOX.index(before):
        looser.append(("sandbox",))
    looser += _known_facts(value, below)
    limits = _table(value, "limits").items()
    looser += [("limits", name) for name, limit in limits if _is_higher(name, limit, below)]
    budget = _table(below, "budget")
    defaults = {"steps": RunLimits().steps, "subagents": RunLimits().subagents}
    budget = {**budget, "run": {**defaults, **_table(budget, "run")}}
    looser += _more(_table(value, "budget"), budget, ("budget",))
    kept, names = _without(value, looser), _dotted(looser)
    if isinstance(hosts := value.get(NETWORK), list):
        limit = below.get(NETWORK, False)
        kept[NETWORK] = _network(hosts, limit=limit)
        beyond = [each for each in hosts if _network([each], limit=limit) != [each]]
        names += (f"{NETWORK} ({', '.join(beyond)})",) if beyond else ()
    return kept, names


def _known_facts(value: Mapping[str, Any], below: Mapping[str, Any]) -> Iterator[_Path]:
    """Yield the paths of model facts that the user has set too, as a price may be a limit."""
    for provider, entry in _entries(value, "provider"):
        stated = _table(_table(_table(below, "provider"), provider), "models")
        for name, facts in sorted(_entries(entry, "models")):
            twice = sorted(facts.keys() & _table(stated, name).keys())
            yield from (("provider", provider, "models", name, key) for key in twice)


def _more(said: Mapping[str, Any], before: Mapping[str, Any], at: _Path) -> Iterator[_Path]:
    """Yield the paths of keys in `said`, at any depth, that would loosen a limit of `before`."""
    for name, limit in said.items():
        known = before.get(name)
        if isinstance(limit, Mapping):
            yield from _more(limit, _table(before, name), (*at, name))
        elif _takes_off(limit, known) or (name == _UNPRICED and limit != known):
            yield (*at, name)


def _takes_off(limit: object, before: object) -> bool:
    if not isinstance(before, int | float):
        return False
    return limit is None or (isinstance(limit, int | float) and not limit <= before)


def _network(hosts: list[str], *, limit: bool | list[str]) -> bool | list[str]:
    """Return the hosts that both the project's list and the limit allow."""
    found = tightened(tuple(hosts), tuple(limit) if isinstance(limit, list) else limit is True)
    return list(found) if isinstance(found, tuple) else found


def _is_higher(name: str, limit: object, below: Mapping[str, Any]) -> bool:
    """Return whether a process limit is higher than without the project; 0 is no limit."""
    said = _table(below, "limits").get(name)
    if limit is None:
        return said is not None
    before = getattr(ProcessLimits(), name, None) if said is None else said
    if name == "memory_mb" and before is None:
        before = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4 >> 20
    if not isinstance(limit, int) or not isinstance(before, int):
        return False
    return before > 0 and not 0 < limit <= before


def _is_document_inside(path: str) -> bool:
    pure = PurePath(path)
    inside = not pure.is_absolute() and ".." not in pure.parts
    return inside and pure.suffix in _DOCUMENTS


def _renamed(table: Mapping[str, Any]) -> dict[str, Any]:
    return {_OWN.get(name, name): entry for name, entry in table.items()}


def _exposed(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tool patterns in a table's `exposure` setting with a value other than "hidden"."""
    return (name for name, word in _table(table, "exposure").items() if word != "hidden")


def _table(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the table with this name in `value`, or an empty table."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _entries(value: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and content of each table inside the table with this name."""
    found = _table(value, name)
    return ((key, entry) for key, entry in found.items() if isinstance(entry, Mapping))


def _without(value: Mapping[str, Any], paths: Collection[_Path]) -> dict[str, Any]:
    """Return the value without the entries at the key paths `paths`."""
    kept = dict(value)
    for name in {path[0] for path in paths}:
        inner = [path[1:] for path in paths if path[0] == name]
        if () in inner:
            del kept[name]
        else:
            kept[name] = _without(kept[name], inner)
    return kept


def _dotted(paths: Iterable[_Path]) -> tuple[str, ...]:
    return tuple(map(".".join, paths))
