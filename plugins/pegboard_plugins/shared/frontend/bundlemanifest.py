"""The parser of bundles: it reads a bundle's parts from its folder and runs no code of it.

A bundle has one of two forms: Agent Plugins 1.0.0 (`plugin.json` in the root) and Claude Code's
plugins (`.claude-plugin/plugin.json`). A folder of both forms has the skills and servers of the
first, and the agents, commands and hooks of the second.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from pegboard.errors import InvalidInputError
from pegboard_plugins.shared.frontend.skillcheck import SKILL_FILE, check_skill

SCHEMAS = "https://agent-plugins.org/schemas/1.0.0"
AGENT_PLUGIN, CLAUDE_PLUGIN = "plugin.json", ".claude-plugin/plugin.json"
_NAME = re.compile(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")
_AGENT_KEYS = frozenset(
    {
        *("$schema", "name", "version", "description", "author", "homepage", "repository"),
        *("license", "keywords", "extensions"),
    }
)
_CLAUDE_KEYS = frozenset(
    {
        *("name", "version", "description", "author", "homepage", "repository", "license"),
        *("keywords", "$schema", "commands", "agents", "skills", "hooks", "mcpServers"),
    }
)
_NOTHING_LIKE_IT = "Pegboard has nothing like it"
_UNMAPPED = {
    "output-styles": ("output styles", "an agent's prompt says how to answer"),
    ".lsp.json": ("language servers", "your configuration names them"),
    "themes": ("themes", "their form is not that of the chat's themes"),
    "workflows": ("workflows", _NOTHING_LIKE_IT),
    "monitors": ("monitors", _NOTHING_LIKE_IT),
}
"""Parts of Claude Code's plugins that have no effect here, each with the reason."""
_AUTHOR_KEYS = frozenset({"name", "email", "url"})
_WORKING_FOLDER = re.compile(r"\./|\$\{PLUGIN_(?:ROOT|DATA)\}(?:/|$)")
_SERVER_KEYS: Mapping[str, frozenset[str]] = {
    "stdio": frozenset({"type", "command", "args", "env", "cwd"}),
    "streamable-http": frozenset({"type", "url", "headers"}),
    "sse": frozenset({"type", "url", "headers"}),
    "http": frozenset({"type", "url", "headers"}),
}
_COMMAND = re.compile(r"[^/\s$]+|\./(?!.*\.\.)\S+")
_LOOPBACK = re.compile(r"http://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?:[:/]|$)")


class BundleError(InvalidInputError):
    """A folder is not a usable bundle."""


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a bundle: folders of skills, files of hooks, and servers in Pegboard's form.

    `agents` and `commands` are folders or Markdown files. `notes` are lines about the parts that
    Pegboard ignores. `storage` is the bundle's own data folder, which outlasts updates.
    """

    name: str
    form: Literal["Agent Plugins", "Claude Code"]
    root: Path
    storage: Path
    version: str = ""
    description: str = ""
    skills: tuple[Path, ...] = ()
    agents: tuple[Path, ...] = ()
    commands: tuple[Path, ...] = ()
    hooks: tuple[Path, ...] = ()
    servers: Mapping[str, dict[str, Any]] = {}
    notes: tuple[str, ...] = ()


def read_bundle(root: Path, storage: Path) -> Bundle:
    """Parse the bundle in the folder `root`; blocks. `storage` is the bundle's data folder.

    :raises BundleError: when the folder is not a bundle, or its manifest is invalid.
    """
    _refuse_links_out(root)
    agent_plugin = (root / AGENT_PLUGIN).is_file()
    claude_plugin = (root / CLAUDE_PLUGIN).is_file()
    if not agent_plugin and not claude_plugin:
        raise BundleError(
            f"{root} is not a bundle: it has no {AGENT_PLUGIN} and no {CLAUDE_PLUGIN}"
        )
    reader = _ManifestReader(root, storage)
    return reader.agent_plugin() if agent_plugin else reader.claude_plugin()


def _refuse_links_out(root: Path) -> None:
    whole = root.resolve()
    for path in root.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(whole):
            raise BundleError(
                f"{path} is a link that leads out of the bundle; replace it by a file"
            )


class _ManifestReader:
    """A parser of a bundle's folder; `_notes` collects the parts of the bundle that are ignored."""

    def __init__(self, root: Path, storage: Path) -> None:
        self._root = root
        self._storage = storage
        self._notes: dict[str, None] = {}

    def agent_plugin(self) -> Bundle:
        facts = self._table(AGENT_PLUGIN)
        if facts.get("$schema") != f"{SCHEMAS}/plugin.schema.json":
            raise BundleError(
                f"{self._root / AGENT_PLUGIN}: $schema is {facts.get('$schema')!r};"
                f" Pegboard reads {SCHEMAS}/plugin.schema.json"
            )
        for key in facts.keys() - _AGENT_KEYS:
            self._note(f"the key {key}", why="Agent Plugins 1.0.0 has no such key")
        if "extensions" in facts:
            self._note("the key extensions", why="none of them is for Pegboard")
        self._check_facts(facts)
        servers = self._agent_servers() if (self._root / "mcp.json").exists() else {}
        parts: Mapping[str, tuple[Path, ...]] = {}
        if (self._root / CLAUDE_PLUGIN).is_file():
            others = self._table(CLAUDE_PLUGIN)
            parts = self._claude_parts(others)
            for key in sorted(others.keys() & {"skills", "mcpServers"}):
                self._note(f"the key {key} of {CLAUDE_PLUGIN}", why=f"{AGENT_PLUGIN} counts")
        return self._bundle(facts, "Agent Plugins", skills=self._skills(), servers=servers, **parts)

    def claude_plugin(self) -> Bundle:
        facts = self._table(CLAUDE_PLUGIN)
        return self._bundle(
            facts,
            "Claude Code",
            **self._claude_parts(facts),
            skills=self._skills(facts.get("skills")),
            servers=self._claude_servers(facts.get("mcpServers")),
        )

    def _claude_parts(self, facts: Mapping[str, Any]) -> Mapping[str, tuple[Path, ...]]:
        """Return the agents, commands and hooks, which only Claude Code's manifest can have."""
        for key in sorted(facts.keys() - _CLAUDE_KEYS):
            self._note(f"the key {key}", why=_NOTHING_LIKE_IT)
        for name, (what, why) in _UNMAPPED.items():
            if (self._root / name).exists():
                self._note(what, why=why)
        hooks = [self._root / "hooks" / "hooks.json"]
        if isinstance(facts.get("hooks"), dict):
            hooks.append(self._root / CLAUDE_PLUGIN)
        else:
            hooks += self._paths(facts.get("hooks"))
        return {
            "agents": self._folders("agents", facts.get("agents")),
            "commands": self._folders("commands", facts.get("commands")),
            "hooks": tuple(dict.fromkeys(path for path in hooks if path.is_file())),
        }

    def _check_facts(self, facts: Mapping[str, Any]) -> None:
        """Check the types of the descriptive fields in the manifest of an Agent Plugin.

        :raises BundleError: when a field breaks the specification.
        """
        for key in ("homepage", "repository", "license"):
            if not isinstance(facts.get(key, ""), str):
                raise self._wrong(key, facts[key], "a string")
        if not _are_texts(facts.get("keywords", [])):
            raise self._wrong("keywords", facts["keywords"], "a list of strings")
        author = facts.get("author", {})
        if not isinstance(author, dict) or not _are_texts([*author.values()]):
            raise self._wrong("author", author, "an object of strings")
        if unknown := sorted(author.keys() - _AUTHOR_KEYS):
            raise self._wrong("author", author, f"an object without the key {unknown[0]}")

    def _wrong(self, key: str, value: object, expected: str) -> BundleError:
        return BundleError(f"{self._root}: {key} is {value!r} where {expected} is expected")

    def _skills(self, given: object = None) -> tuple[Path, ...]:
        """Return the folders of the valid skills; `given` is the manifest's `skills` field."""
        own = self._root / "skills"
        found: dict[Path, None] = {}
        for place in (*([own] if own.exists() else []), *self._paths(given)):
            if not place.is_dir():
                self._note(f"the file {place.relative_to(self._root)}", why="a folder is expected")
                continue
            is_skill = place != own and (place / SKILL_FILE).is_file()
            folders = [place] if is_skill else sorted(filter(Path.is_dir, place.iterdir()))
            found |= dict.fromkeys(filter(self._is_skill, folders))
        return tuple(found)

    def _is_skill(self, folder: Path) -> bool:
        if not (folder / SKILL_FILE).is_file():
            self._note(f"the folder {folder.name} of skills", why=f"it has no {SKILL_FILE}")
            return False
        check = check_skill(folder / SKILL_FILE)
        is_strict = (self._root / AGENT_PLUGIN).is_file()  # its specification skips invalid skills
        problem = check.problem or (check.departures[0] if is_strict and check.departures else "")
        if problem:
            self._note(f"the skill {folder.name}", why=problem)
            return False
        lines = (*check.departures, *check.notes)
        self._notes |= dict.fromkeys(f"the skill {folder.name}: {line}" for line in lines)
        return True

    def _bundle(
        self,
        facts: Mapping[str, Any],
        form: Literal["Agent Plugins", "Claude Code"],
        **parts: Any,  # noqa: ANN401 - fields of a bundle
    ) -> Bundle:
        name = facts.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BundleError(
                f"{self._root}: the name {name!r} of the bundle is not one of 1 to 64 letters a-z,"
                " digits, dots and hyphens"
            )
        for key in ("version", "description"):
            if not isinstance(facts.get(key, ""), str):
                raise self._wrong(key, facts[key], "a string")
        return Bundle(
            name=name,
            form=form,
            root=self._root,
            storage=self._storage,
            version=facts.get("version", ""),
            description=facts.get("description", ""),
            notes=tuple(self._notes),
            **parts,
        )

    def _table(self, name: str) -> Mapping[str, Any]:
        path = self._root / name
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise BundleError(f"{path} cannot be read: {error}") from error
        if not isinstance(found, dict):
            raise BundleError(f"{path} is not a JSON object")
        return found

    def _paths(self, given: object) -> Iterator[Path]:
        """Yield the paths of a manifest's field that lie in the bundle; note the other paths."""
        for each in given if isinstance(given, list) else [given]:
            if not isinstance(each, str):
                continue
            path = (self._root / each).resolve()
            if path.is_relative_to(self._root.resolve()) and path.exists():
                yield self._root / path.relative_to(self._root.resolve())
            else:
                self._note(f"the path {each}, which is not in the bundle")

    def _folders(self, name: str, given: object) -> tuple[Path, ...]:
        own = self._root / name
        return (*([own] if own.is_dir() else []), *self._paths(given))

    def _agent_servers(self) -> Mapping[str, dict[str, Any]]:
        try:
            facts = self._table("mcp.json")
        except BundleError as error:
            self._note(f"mcp.json ({error})")
            return {}
        if facts.get("$schema") != f"{SCHEMAS}/mcp.schema.json":
            self._note("mcp.json, whose $schema is not that of Agent Plugins 1.0.0")
            return {}
        unknown = sorted(facts.keys() - {"$schema", "mcpServers"})
        if unknown or not isinstance(facts.get("mcpServers"), dict):
            why = f"it has the key {unknown[0]}" if unknown else "its mcpServers is not an object"
            self._note("mcp.json", why=why)
            return {}
        return self._servers(facts.get("mcpServers"), is_closed=True)

    def _claude_servers(self, given: object) -> Mapping[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        tables: list[object] = [given] if isinstance(given, dict) else []
        paths = [self._root / ".mcp.json", *([] if tables else self._paths(given))]
        for path in (each for each in paths if each.is_file()):
            facts = self._table(str(path.relative_to(self._root)))
            tables.append(facts.get("mcpServers", facts))
        for table in tables:
            found |= self._servers(table, is_closed=False)
        return found

    def _servers(self, given: object, *, is_closed: bool) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for name, entry in given.items() if isinstance(given, dict) else ():
            try:
                found[name] = self._server(entry, is_closed=is_closed)
            except ValueError as error:
                self._note(f"the server {name} ({error})")
        return found

    def _server(self, entry: object, *, is_closed: bool) -> dict[str, Any]:
        """Convert a bundle's entry for an MCP server into Pegboard's settings of a server.

        :raises ValueError: when the entry is invalid.
        """
        if not isinstance(entry, dict):
            raise ValueError("it is not a JSON object")  # noqa: TRY004 - the caller's one kind
        kind = entry.get("type", "" if is_closed else ("http" if "url" in entry else "stdio"))
        keys = _SERVER_KEYS.get(kind if isinstance(kind, str) else "")
        if keys is None or (is_closed and kind == "http"):
            raise ValueError(f"its type is {kind!r}")
        if unknown := sorted(entry.keys() - keys):
            raise ValueError(f"it has the key {unknown[0]}")
        return self._local(entry, is_closed=is_closed) if kind == "stdio" else _remote(entry)

    def _local(self, entry: Mapping[str, Any], *, is_closed: bool) -> dict[str, Any]:
        command, args, env = entry.get("command"), entry.get("args", []), entry.get("env", {})
        if not isinstance(command, str) or not command:
            raise ValueError("it has no command")
        program = str(self._root / command) if command.startswith("./") else self._filled(command)
        if Path(program).is_dir():
            raise ValueError(f"the command {command!r} is a folder; name a program in it")
        if is_closed and not _COMMAND.fullmatch(command):
            text = f"the command {command!r} is neither a name nor a path that begins with ./"
            raise ValueError(text)
        if not _are_texts(args) or not isinstance(env, dict) or not _are_texts([*env.values()]):
            raise ValueError("its args or env are not texts")
        where = entry.get("cwd", "")
        if not isinstance(where, str) or (where and not self._lies_within(where)):
            raise ValueError(f"the cwd {where!r} is not in the bundle")
        if is_closed:
            where = where or "./"
            _check_local(where, env)
        variables = {"PLUGIN_ROOT": str(self._root), "PLUGIN_DATA": str(self._storage)}
        variables |= {f"CLAUDE_{name}": value for name, value in list(variables.items())}
        variables |= {name: self._filled(value) for name, value in env.items()}
        server = {"type": "local", "command": [program, *map(self._filled, args)]}
        return {**server, "environment": variables, **self._where(where)}

    def _where(self, where: str) -> dict[str, str]:
        return {"cwd": str(self._root / self._filled(where))} if where else {}

    def _lies_within(self, where: str) -> bool:
        path = (self._root / self._filled(where)).resolve()
        places = (self._root.resolve(), self._storage.resolve())
        return any(path.is_relative_to(place) for place in places)

    def _filled(self, text: str) -> str:
        for name, value in (("PLUGIN_ROOT", self._root), ("PLUGIN_DATA", self._storage)):
            for spelling in (f"${{CLAUDE_{name}}}", f"${{{name}}}"):
                text = text.replace(spelling, str(value))
        return text

    def _note(self, what: str, *, why: str = "") -> None:
        line = f"{what} is not honoured"
        self._notes[f"{line}: {why}" if why else line] = None


def _check_local(where: str, env: Mapping[str, str]) -> None:
    """Reject the folder or environment of a local server if Agent Plugins may not set it."""
    if not _WORKING_FOLDER.match(where):
        begin = "./, ${PLUGIN_ROOT} or ${PLUGIN_DATA}"
        raise ValueError(f"the cwd {where!r} does not begin with {begin}")
    if reserved := sorted(env.keys() & {"PLUGIN_ROOT", "PLUGIN_DATA"}):
        raise ValueError(f"its env sets {reserved[0]}, which Pegboard sets")


def _remote(entry: Mapping[str, Any]) -> dict[str, Any]:
    url, headers = entry.get("url"), entry.get("headers", {})
    if not isinstance(url, str) or not (url.startswith("https://") or _LOOPBACK.match(url)):
        raise ValueError(f"the url {url!r} is not of https, or of http on this machine")
    if not _names_host(url):
        raise ValueError(f"the url {url!r} has no host; write https://HOST/PATH")
    if not isinstance(headers, dict) or not _are_texts([*headers.values()]):
        raise ValueError("its headers are not texts")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("its headers have a name twice")
    return {"type": "remote", "url": url, **({"headers": headers} if headers else {})}


def _names_host(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:  # a bracket that does not close
        return False


def _are_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(each, str) for each in values)
