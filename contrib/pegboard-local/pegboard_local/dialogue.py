"""Requests to models without a tool-call format, and the JSON schema that shapes their answers.

Each answer is one JSON object that follows a schema while it is generated: a call of an offered
tool, or the text that ends the turn. The model therefore cannot generate an invalid call.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pegboard.http import media_inputs, note_instead
from pegboard.providers import (
    Call,
    Content,
    Media,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Result,
    Text,
    ToolDefinition,
)

ANSWER, TOOL, INPUT = "answer", "tool", "input"
_KEPT = ("type", "enum", "const", "items", "properties", "required", "anyOf", "oneOf")
"""What of a schema the grammar is made from; the core checks the rest."""
_ABOUT_CHARS = 160
_SENTENCE = re.compile(rf"(.{{10,{_ABOUT_CHARS}}}?[.:])(?=\s|$)", re.DOTALL)
_RULES = """\
Answer with one JSON object: a tool call, or {"answer":TEXT} when the work is done."""
_REMINDER = re.compile(r"\n*<system-reminder session=.*?</system-reminder>", re.DOTALL)
_WORDS = {
    "bash": "runs a command",
    "edit": "changes a file",
    "grep": "searches",
    "read": "shows a file",
    "write": "makes a file",
}
"""A tiny model's descriptions."""
_SHOWN = (
    ("Show me README.md", "read", {"filePath": "README.md"}),
    ("Where is parse_date defined?", "grep", {"pattern": "parse_date"}),
    ("Run make lint", "bash", {"command": "make lint"}),
    ("Write 42 into answer.txt", "write", {"filePath": "answer.txt", "content": "42"}),
    ("What does src/app.py contain?", "read", {"filePath": "src/app.py"}),
)
"""What a tiny model is shown as earlier calls: it copies what it saw, and follows few words."""

_WIDE = 1 << 16
"""Tokens of a window of unknown size."""

Chat = list[dict[str, str]]


def messages_of(request: ModelRequest, *, tiny: bool) -> Chat:
    """Return the request's messages as a chat in which user and assistant alternate.

    For a `tiny` model, example calls are added, and reminders are removed.
    """
    rules = [_tools(request.tools, tiny=tiny)] if request.tools else []
    chat: Chat = [{"role": "system", "content": "\n\n".join((*request.system, *rules))}]
    if tiny:
        chat += _examples(request.tools)
    limit = (request.model.limit.context or _WIDE) * 2 // 3
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        text = "\n".join(_texts(message, request, limit))
        if role == "user" and tiny:
            text = _REMINDER.sub("", text)
        if text and chat[-1]["role"] == role:
            chat[-1]["content"] += f"\n{text}"
        elif text:
            chat.append({"role": role, "content": text})
    return chat


def schema_of(tools: tuple[ToolDefinition, ...], *, tiny: bool) -> dict[str, Any] | None:
    """Return the JSON schema of an answer; None without tools, when the answer is plain text."""
    if not tools:
        return None
    calls = [
        _closed({TOOL: {"const": tool.name}, INPUT: _grammar(tool.parameters, tiny=tiny)})
        for tool in tools
    ]
    return {"anyOf": [*calls, _closed({ANSWER: {"type": "string"}})]}


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    names = list(properties)
    return {
        "type": "object",
        "properties": dict(properties),
        "required": names,
        "additionalProperties": False,
    }


def _grammar(schema: Any, *, tiny: bool) -> Any:  # noqa: ANN401 - a schema, at any depth
    """Return the part of a JSON Schema that a grammar can enforce.

    For a tiny model, optional properties are removed, because such a model fills in all properties.
    """
    if not isinstance(schema, Mapping):
        return {}
    kept = {name: schema[name] for name in _KEPT if name in schema}
    required = [name for name in kept.get("required", ()) if name in kept.get("properties", {})]
    if properties := kept.get("properties"):
        named = required if tiny and required else [*required, *properties]
        kept["properties"] = {name: _grammar(properties[name], tiny=tiny) for name in named}
        kept["additionalProperties"] = False
    if "required" in kept:
        kept["required"] = required
    if "items" in kept:
        kept["items"] = _grammar(kept["items"], tiny=tiny)
    for name in ("anyOf", "oneOf"):
        if name in kept:
            kept[name] = [_grammar(each, tiny=tiny) for each in kept[name]]
    return kept


def _examples(tools: tuple[ToolDefinition, ...]) -> Chat:
    """Return example calls of the offered tools as earlier messages of the chat."""
    chat: Chat = []
    needed = {tool.name: set(tool.parameters.get("required", ())) for tool in tools}
    for asked, name, given in _SHOWN:
        if name in needed and needed[name] <= set(given):
            answer = _json({TOOL: name, INPUT: given})
            chat.append({"role": "user", "content": asked})
            chat.append({"role": "assistant", "content": answer})
    return chat


def _tools(tools: tuple[ToolDefinition, ...], *, tiny: bool) -> str:
    if tiny:
        return f"{_RULES}\nTools: {', '.join(map(_short, tools))}."
    form = _json({TOOL: "NAME", INPUT: {}})
    return "\n".join((_RULES, f"A tool call is {form} with the tool's input.", *map(_whole, tools)))


def _short(tool: ToolDefinition) -> str:
    """Describe a tool briefly: the required arguments and the purpose."""
    named = tool.parameters.get("required") or tool.parameters.get("properties", ())
    call = f"{tool.name}({', '.join(named)})"
    if tool.name in _WORDS:
        return f"{call} {_WORDS[tool.name]}"
    found = _SENTENCE.match(tool.description)
    about = " ".join((found[1] if found else tool.description[:_ABOUT_CHARS]).split())
    return f"{call}: {about.rstrip('.')}"


def _whole(tool: ToolDefinition) -> str:
    parameters = json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":"))
    return f"\n## {tool.name}\n{tool.description}\ninput: {parameters}"


def _texts(message: ModelMessage, request: ModelRequest, limit: int) -> Iterator[str]:
    for part in message.content:
        if text := _part_text(part, request, limit):
            yield _as_answer(text) if message.role == "assistant" and request.tools else text


def _as_answer(text: str) -> str:
    """Convert an earlier text of the model into the JSON form of an answer."""
    return text if text.startswith(f'{{"{TOOL}"') else _json({ANSWER: text})


def _part_text(part: Content, request: ModelRequest, limit: int) -> str:
    match part:
        case Text():
            return part.text
        case Call():
            return _json({TOOL: part.name, INPUT: part.input})
        case Result():
            failed = " failed" if part.is_error else ""
            media = "".join(f"\n{_part_text(each, request, limit)}" for each in part.media)
            return f"Result of {part.name}{failed}:\n{_bounded(part.output, limit)}{media}"
        case Media():
            return note_instead(part, media_inputs(request.model))
        case Reasoning():
            return ""


def _bounded(text: str, limit: int) -> str:
    """Shorten a text to about `limit` characters, by removing characters in the middle."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
