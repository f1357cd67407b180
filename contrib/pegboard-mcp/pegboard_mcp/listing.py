"""Checks of the lists from MCP servers: items are validated, cut to limits and given a digest."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

LIST_TOOLS = 200
LIST_PAGES = 100
DESCRIPTION_BYTES = 4 << 10
INSTRUCTION_BYTES = 2_000
SCHEMA_BYTES = 64 << 10
SCHEMA_LEVELS = 32
DAY_MS = 24 * 60 * 60 * 1000
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Control, zero-width, bidirectional and tag characters: a user does not see them, a model does."""
_CUT = " [cut: the server's text is longer]"
_NAME_LETTERS = 80


class ServerTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a server; `definition` is the server's JSON, and `digest` the JSON's SHA-256."""

    name: str
    title: str = ""
    description: str = ""
    parameters: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    digest: str = ""
    definition: dict[str, Any] = {}


class ServerPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt of a server: its name, all argument names, and the required argument names."""

    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


class ServerResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of a server, or a resource template if `uri` contains braces."""

    uri: str
    name: str = ""
    description: str = ""
    mime_type: str = ""


class ToolList(msgspec.Struct, frozen=True):
    """The usable tools of a list, and a note about each problem of the list."""

    tools: tuple[ServerTool, ...] = ()
    notes: tuple[str, ...] = ()


def read_tools(raw: Sequence[object]) -> ToolList:
    """Return the valid tools of a list, with notes about the invalid tools."""
    tools: dict[str, ServerTool] = {}
    notes: list[str] = []
    for each in raw:
        name = each.get("name") if isinstance(each, Mapping) else None
        if not isinstance(each, Mapping) or not isinstance(name, str) or not name:
            notes.append("a tool without a name is left out")
            continue
        if name in tools:
            notes.append(f"{_quoted(name)} is listed twice; the first one counts")
            continue
        if flaw := _flaw(each):
            notes.append(f"{_quoted(name)} is left out: {flaw}")
            continue
        if len(tools) == LIST_TOOLS:
            notes.append(
                f"only {LIST_TOOLS} tools are used; {_quoted(name)} and later ones are not"
            )
            break
        tools[name], changes = _tool(name, each)
        notes += [f"{_quoted(name)}: {change}" for change in changes]
    return ToolList(tuple(tools.values()), tuple(notes))


def definition_digest(raw: Mapping[str, Any]) -> str:
    """Return the SHA-256 of all parts of a tool's definition that affect a model or a user."""
    names = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
    facts = {name: raw[name] for name in names if raw.get(name) is not None}
    return hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()


def _flaw(raw: Mapping[str, Any]) -> str:
    """Return the reason why a tool is unusable, or "" if the tool is usable."""
    schema = raw.get("inputSchema")
    if not isinstance(schema, Mapping):
        return "it has no inputSchema"
    if schema.get("type") != "object":
        return "its inputSchema is not of type object"
    if _HIDDEN.search(raw["name"]):
        return "its name has invisible characters"
    if not _levels_within(schema, SCHEMA_LEVELS):
        return f"its inputSchema has more than {SCHEMA_LEVELS} levels"
    if len(msgspec.json.encode(schema)) > SCHEMA_BYTES:
        return f"its inputSchema has more than {SCHEMA_BYTES >> 10} KiB"
    return ""


def _tool(name: str, raw: Mapping[str, Any]) -> tuple[ServerTool, list[str]]:
    described = raw.get("description")
    title, annotations = raw.get("title"), raw.get("annotations")
    description, changes = clean_text(described if isinstance(described, str) else "")
    schema = dict(_clean_schema(raw["inputSchema"]))
    if schema != raw["inputSchema"]:
        changes.append("invisible characters were removed from its inputSchema")
    tool = ServerTool(
        name=name,
        title=clean_text(title)[0] if isinstance(title, str) else "",
        description=description,
        parameters=schema,
        annotations=dict(annotations) if isinstance(annotations, Mapping) else {},
        digest=definition_digest(raw),
        definition=dict(raw),
    )
    return tool, changes


def clean_text(text: str, limit_bytes: int = DESCRIPTION_BYTES) -> tuple[str, list[str]]:
    """Remove invisible characters and cut the text; return it with notes on what was changed."""
    changes = []
    clean = _HIDDEN.sub("", text)
    if clean != text:
        changes.append("invisible characters were removed from its description")
    content = clean.encode("utf-8", "replace")
    if len(content) > limit_bytes:
        changes.append(f"its description was cut to {limit_bytes >> 10} KiB")
        clean = content[: limit_bytes - len(_CUT)].decode("utf-8", "ignore") + _CUT
    return clean, changes


def _clean_schema(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Remove invisible characters from a schema's titles and descriptions."""
    match schema:
        case Mapping():
            return {
                key: _HIDDEN.sub("", value)
                if key in ("title", "description") and isinstance(value, str)
                else _clean_schema(value)
                for key, value in schema.items()
            }
        case list():
            return [_clean_schema(each) for each in schema]
        case _:
            return schema


def _levels_within(value: object, levels: int) -> bool:
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list):
        return True
    return levels > 0 and all(_levels_within(each, levels - 1) for each in value)


def read_prompts(raw: Sequence[object]) -> tuple[ServerPrompt, ...]:
    """Return the prompts of a list that have a valid name."""
    found = {}
    for each in _named(raw, "name"):
        arguments = [it for it in _listed(each, "arguments") if isinstance(it.get("name"), str)]
        found[each["name"]] = ServerPrompt(
            name=each["name"],
            description=_described(each),
            arguments=tuple(it["name"] for it in arguments),
            required=tuple(it["name"] for it in arguments if it.get("required") is True),
        )
    return tuple(found.values())[:LIST_TOOLS]


def read_resources(raw: Sequence[object], uri: str = "uri") -> tuple[ServerResource, ...]:
    """Return the resources or templates of a list; `uri` is the key with the address of each."""
    found = {
        each[uri]: ServerResource(
            uri=each[uri],
            name=_HIDDEN.sub("", str(each.get("name") or "")),
            description=_described(each),
            mime_type=str(each.get("mimeType") or ""),
        )
        for each in _named(raw, uri)
    }
    return tuple(found.values())[:LIST_TOOLS]


def time_to_live_s(raw: object) -> float | None:
    """Return for how many seconds to cache a list, by its `ttlMs`; at most a day (SEP-2549)."""
    if isinstance(raw, bool) or not isinstance(raw, int | float) or raw < 0:
        return None
    return min(raw, DAY_MS) / 1000


def _named(raw: Sequence[object], key: str) -> Iterator[Mapping[str, Any]]:
    for each in raw:
        name = each.get(key) if isinstance(each, Mapping) else None
        if isinstance(each, Mapping) and isinstance(name, str) and not _HIDDEN.search(name):
            yield each


def _listed(raw: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = raw.get(key)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _described(raw: Mapping[str, Any]) -> str:
    return clean_text(str(raw.get("description") or raw.get("title") or ""), 1024)[0]


def _quoted(name: str) -> str:
    return repr(_HIDDEN.sub("", name)[:_NAME_LETTERS])
