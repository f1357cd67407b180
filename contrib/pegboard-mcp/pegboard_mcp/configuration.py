"""The configuration of MCP servers, read from the formats of several programs.

An entry has the format of OpenCode (`type = "local"` or `"remote"`), of `.mcp.json` or Claude Code,
or of Pegboard. Pegboard's format has OpenCode's keys and the fields of `ServerConfig`.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from pegboard.errors import ConfigError
from pegboard.http import is_loopback
from pegboard.plugins import nearest_names

NAME_LETTERS = 48
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<other>[^}]*))?\}")
_TYPES = {"local": "stdio", "remote": "http", "streamable-http": "http"}
_MILLISECONDS = 1000
Table = Mapping[str, Any]


class OAuthConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The client's identity for the authorization server of a remote MCP server.

    `client_registration` is `cimd` for a metadata document at `client_metadata_url`, or `dcr` for
    dynamic registration. `auto` prefers `cimd` if the authorization server supports it.
    """

    client_id: str = ""
    client_secret_key: str = ""
    client_metadata_url: str = ""
    client_name: str = "Pegboard"
    client_registration: Literal["auto", "cimd", "dcr"] = "auto"
    scope: str = ""
    callback_port: int = 0


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of an MCP server.

    - `command` starts a local server; `url` is the address of a remote server.
    - `environment` has variables for the server's process, and `env` names variables to inherit.
    - `headers` are sent with each HTTP request.
    - `tools` and `without` are patterns for names of tools to offer and to leave out.
    - `network` allows the sandboxed process to use the network, and `reads` are folders that the
      process may read.
    - A `lazy` server starts with its first call, and stops after `idle_s` without a call.
    - Prompts wait until a `required` server has listed its tools.
    - `description` tells the model what the tools are for.
    - `instructions` adds the server's instructions to the system prompt.
    - `source` is the file of the entry; `is_project` marks an entry from the repository.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    transport: Literal["stdio", "http", "sse"] = "stdio"
    cwd: str = ""
    environment: dict[str, str] = {}
    env: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    oauth: OAuthConfig | None = OAuthConfig()
    enabled: bool = True
    required: bool = False
    description: str = ""
    instructions: bool = False
    start: Literal["lazy", "eager"] = "lazy"
    exposure: Literal["direct", "deferred", "hidden"] | None = None
    tools: tuple[str, ...] = ("*",)
    without: tuple[str, ...] = ()
    call_timeout_s: float = 60.0
    connect_timeout_s: float = 30.0
    idle_s: float = 600.0
    network: bool | tuple[str, ...] | None = None
    reads: tuple[str, ...] = ()
    source: str = ""
    is_project: bool = False

    @property
    def digest(self) -> str:
        """The digest of the settings that decide which server answers, without secret values."""
        facts = (
            *(self.name, self.command, self.url, self.transport, self.cwd),
            *(sorted({*self.environment, *self.env}), sorted(self.headers)),
        )
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    @property
    def place(self) -> str:
        """The command line of a local server, or the URL of a remote server without credentials."""
        if not self.url:
            return " ".join(self.command)
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The file that entries of servers come from, and whether the file belongs to the repository.

    `env` has the variables for `${NAME}`; if `env` is None, nothing is replaced. If `is_strict`, an
    unknown key is an error; files of other programs may have keys that Pegboard does not use.
    """

    file: str
    is_project: bool = False
    is_strict: bool = False
    env: Mapping[str, str] | None = None


def servers_of(tables: Sequence[tuple[Source, Table]]) -> tuple[dict[str, ServerConfig], list[str]]:
    """Return the servers by name, and a message for each unusable entry.

    A later table replaces an earlier entry completely, but `{enabled: bool}` alone only enables or
    disables the earlier entry. A project's entry never replaces a user's entry.
    """
    found: dict[str, ServerConfig] = {}
    problems = []
    for source, table in tables:
        for name, entry in table.items():
            before = found.get(name)
            try:
                found[name] = _merged(before, source, name, entry)
            except ConfigError as error:
                problems.append(str(error))
    return found, problems


def _merged(before: ServerConfig | None, source: Source, name: str, entry: object) -> ServerConfig:
    if not isinstance(entry, Mapping):
        raise _error(source, name, "must be a table with a `command` or a `url`")
    if set(entry) <= {"enabled", "disabled"} and before is not None:
        if source.is_project and not before.is_project and _is_enabled(entry):
            raise _error(source, name, f"cannot switch on a server of {before.source}")
        return msgspec.structs.replace(before, enabled=_is_enabled(entry))
    if before is not None and source.is_project and not before.is_project:
        text = f"has the name of a server of {before.source}, which stays; rename this one"
        raise _error(source, name, text)
    return server_of(source, name, entry)


def server_of(source: Source, name: str, entry: Table) -> ServerConfig:
    """Convert an entry in any supported format to a `ServerConfig`.

    :raises ConfigError: when the entry is unusable; the message names the file and the key.
    """
    if not re.fullmatch(rf"[A-Za-z0-9][\w .-]{{0,{NAME_LETTERS - 1}}}", name):
        text = f"the name of a server starts with a letter or digit and has {NAME_LETTERS} at most"
        raise _error(source, name, text)
    try:
        facts = dict(_facts(source, name, _with_variables(source, entry)))
        server = msgspec.convert(facts, ServerConfig, strict=False)
    except (msgspec.ValidationError, TypeError) as error:
        raise _error(source, name, f"cannot be used: {error}") from error
    if bool(server.command) == bool(server.url):
        raise _error(source, name, "needs either a `command` or a `url`")
    if server.url:
        _check_url(source, server)
    if server.oauth is not None and (document := server.oauth.client_metadata_url):
        parts = urlsplit(document)
        if parts.scheme != "https" or parts.path in ("", "/"):
            text = f"{document} must begin with https:// and have a path; the document is there"
            raise _error(source, f"{name}.oauth.client_metadata_url", text)
    return _tightened(server) if source.is_project else server


def _tightened(server: ServerConfig) -> ServerConfig:
    """Reset the settings that a project may not choose for a server, such as network access."""
    return msgspec.structs.replace(
        server,
        exposure=None if server.exposure == "direct" else server.exposure,
        instructions=False,
        network=False if server.network is False else None,
        reads=(),
    )


def _facts(source: Source, name: str, entry: Table) -> Iterator[tuple[str, object]]:
    """Yield the name and value of each field of `ServerConfig` that the entry sets."""
    yield from (("name", name), ("source", source.file), ("is_project", source.is_project))
    known = set(ServerConfig.__struct_fields__) - {"name", "source", "is_project", "transport"}
    if "url" in entry:
        yield "transport", "http"
    for key, value in entry.items():
        if key in _TRANSLATED:
            found = dict(_TRANSLATED[key](entry, value))
            if isinstance(oauth := found.get("oauth"), Mapping):
                _check_keys(source, f"{name}.oauth", oauth, OAuthConfig.__struct_fields__)
            yield from found.items()
        elif key in known:
            yield key, value
        else:
            _check_keys(source, name, (key,), (*known, *_TRANSLATED))


def _check_keys(source: Source, place: str, keys: Iterable[str], known: Sequence[str]) -> None:
    """Reject unknown keys, unless the file belongs to another program."""
    for key in keys if source.is_strict else ():
        if key not in known:
            meant = nearest_names(key, known, limit=1)
            hint = f"did you mean {meant[0]}?" if meant else f"known are {', '.join(sorted(known))}"
            raise _error(source, f"{place}.{key}", f"unknown key; {hint}")


_TRANSLATED: Mapping[str, Callable[[Table, Any], Iterable[tuple[str, object]]]] = {
    "$schema": lambda _entry, _value: (),
    "alwaysLoad": lambda _entry, value: (("exposure", "direct"),) if value else (),
    "args": lambda _entry, _value: (),
    "command": lambda entry, value: (("command", _command(entry, value)),),
    "disabled": lambda entry, _value: (("enabled", _is_enabled(entry)),),
    "enabled": lambda entry, _value: (("enabled", _is_enabled(entry)),),
    "env": lambda _entry, value: (("environment" if isinstance(value, Mapping) else "env", value),),
    "oauth": lambda _entry, value: (("oauth", _oauth(value)),),
    "timeout": lambda _entry, value: (("call_timeout_s", value / _MILLISECONDS),),
    "type": lambda _entry, value: (("transport", _TYPES.get(value, value)),),
}
"""Keys of other programs, with the fields that they become."""


def _command(entry: Table, value: object) -> object:
    return (value, *entry.get("args", ())) if isinstance(value, str) else value


def _oauth(value: object) -> object:
    if value is False:
        return None
    if isinstance(value, Mapping):
        return {re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower(): value[key] for key in value}
    return {} if value is True else value


def _check_url(source: Source, server: ServerConfig) -> None:
    parts = urlsplit(server.url)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return
    text = f"{server.place} must begin with https://; http:// is for this machine alone"
    raise _error(source, f"{server.name}.url", text)


def _with_variables(source: Source, entry: Table) -> dict[str, Any]:
    return {key: _replaced(source, value) for key, value in entry.items()}


def _replaced(source: Source, value: Any) -> Any:  # noqa: ANN401 - JSON
    """Replace `${NAME}` and `${NAME:-default}` in the strings of a value."""
    if source.env is None:
        return value
    env = source.env
    match value:
        case str():
            return _VARIABLE.sub(lambda it: env.get(it["name"], it["other"] or ""), value)
        case Mapping():
            return {key: _replaced(source, each) for key, each in value.items()}
        case list() | tuple():
            return [_replaced(source, each) for each in value]
        case _:
            return value


def _is_enabled(entry: Table) -> bool:
    return bool(entry.get("enabled", True)) and not entry.get("disabled", False)


def _error(source: Source, key: str, text: str) -> ConfigError:
    return ConfigError(f"{text} (in {source.file})", key=f"mcp.{key}")
