"""What a language server is asked for, and its answers as lines for a model."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard import ToolError
from pegboard_plugins.lsp.messages import (
    KINDS,
    Call,
    CallItem,
    Hover,
    Position,
    Spot,
    Symbol,
    path_of,
)
from pegboard_plugins.lsp.server import Server

MOST_LINES = 200
LONGEST_LINE = 200
_SHOWN_BYTES = 2 << 20
"""Longer files are not read to show the line of a place in them."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a file, counted from 1 in lines and letters, or the text of a symbol's name."""

    path: Path
    line: int
    character: int
    query: str
    folder: Path


async def hover(server: Server, question: Question) -> list[str]:
    """What the server knows of the thing at the place."""
    raw = await _at_place(server, question, "textDocument/hover")
    found = _decoded(raw, Hover | None)
    return [found.text] if found and found.text else []


async def definition(server: Server, question: Question) -> list[str]:
    """Where the thing is defined."""
    return await _spots(server, question, "textDocument/definition")


async def implementation(server: Server, question: Question) -> list[str]:
    """Where the thing is implemented."""
    return await _spots(server, question, "textDocument/implementation")


async def references(server: Server, question: Question) -> list[str]:
    """Where the thing is used, its definition too."""
    more = {"context": {"includeDeclaration": True}}
    return await _spots(server, question, "textDocument/references", more)


async def document_symbols(server: Server, question: Question) -> list[str]:
    """The symbols of the file, indented as they are nested."""
    uri = await server.open(question.path)
    raw = await server.request("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    lines = []
    for symbol in _decoded(raw, list[Symbol] | None) or ():
        for depth, each in symbol.tree():
            start = each.selection_range.start if each.selection_range else _place(each)[1]
            lines.append(f"{'  ' * depth}{start.line + 1}: {_kind(each.kind)} {each.name}")
    return lines


async def workspace_symbols(server: Server, question: Question) -> list[str]:
    """The symbols of the project whose name fits the query."""
    if question.path.is_file():
        await server.open(question.path)
    raw = await server.request("workspace/symbol", {"query": question.query})
    lines = []
    for symbol in _decoded(raw, list[Symbol] | None) or ():
        uri, start = _place(symbol)
        place = f"{_shown(path_of(uri), question.folder)}:{start.line + 1}"
        lines.append(f"{place}: {_kind(symbol.kind)} {symbol.name}")
    return lines


async def incoming_calls(server: Server, question: Question) -> list[str]:
    """The functions that call the one at the place."""
    return await _calls(server, question, "callHierarchy/incomingCalls")


async def outgoing_calls(server: Server, question: Question) -> list[str]:
    """The functions that the one at the place calls."""
    return await _calls(server, question, "callHierarchy/outgoingCalls")


async def call_items(server: Server, question: Question) -> list[str]:
    """The function at the place, as the calls are asked for."""
    items = await _prepared(server, question)
    return [_called(_decoded(raw, CallItem), question.folder) for raw in items]


async def diagnostics(server: Server, question: Question) -> list[str]:
    """What the server finds in the file, errors first."""
    found = sorted(await server.diagnostics(question.path), key=lambda each: each.severity)
    names = ("", "error", "warning", "information", "hint")
    return [
        f"{each.range.start.line + 1}:{each.range.start.character + 1}:"
        f" {names[each.severity % len(names)]}: {each.message}"
        for each in found
    ]


OPERATIONS: Mapping[str, Callable[[Server, Question], Awaitable[list[str]]]] = {
    "goToDefinition": definition,
    "findReferences": references,
    "hover": hover,
    "documentSymbol": document_symbols,
    "workspaceSymbol": workspace_symbols,
    "goToImplementation": implementation,
    "prepareCallHierarchy": call_items,
    "incomingCalls": incoming_calls,
    "outgoingCalls": outgoing_calls,
    "diagnostics": diagnostics,
}


async def _at_place(
    server: Server, question: Question, method: str, more: Mapping[str, object] | None = None
) -> msgspec.Raw:
    uri = await server.open(question.path)
    position = _position(server, question)
    params = {"textDocument": {"uri": uri}, "position": position, **(more or {})}
    return await server.request(method, params)


def _position(server: Server, question: Question) -> Position:
    """The place in the server's units."""
    lines = _lines(str(question.path))
    if not 0 < question.line <= len(lines):
        raise ToolError(f"{question.path} has {len(lines)} lines, not {question.line}")
    before = lines[question.line - 1][: question.character - 1]
    units = len(before.encode("utf-16-le")) // 2 if server.counts_utf16 else len(before)
    return Position(question.line - 1, units)


async def _spots(
    server: Server, question: Question, method: str, more: Mapping[str, object] | None = None
) -> list[str]:
    raw = await _at_place(server, question, method, more)
    found = _decoded(raw, list[Spot] | Spot | None)
    spots = [found] if isinstance(found, Spot) else found or []
    return _placed((spot.place for spot in spots), question.folder)


def _placed(places: Iterable[tuple[str, Position]], folder: Path) -> list[str]:
    """Each place with the line that stands there."""
    texts: dict[str, list[str]] = {}
    found = []
    for uri, start in places:
        path = path_of(uri)
        lines = texts.setdefault(path, _lines(path))
        text = lines[start.line].strip()[:LONGEST_LINE] if start.line < len(lines) else ""
        found.append(f"{_shown(path, folder)}:{start.line + 1}:{start.character + 1}: {text}")
    return found


async def _calls(server: Server, question: Question, method: str) -> list[str]:
    found: list[str] = []
    for item in await _prepared(server, question):
        raw = await server.request(method, {"item": item})
        for call in _decoded(raw, list[Call] | None) or ():
            other = call.from_ or call.to
            if other is not None:
                found.append(_called(other, question.folder))
    return found


async def _prepared(server: Server, question: Question) -> list[msgspec.Raw]:
    """The items as the server gave them: it wants them back with what is its own in them."""
    raw = await _at_place(server, question, "textDocument/prepareCallHierarchy")
    return _decoded(raw, list[msgspec.Raw] | None) or []


def _called(item: CallItem, folder: Path) -> str:
    place = f"{_shown(path_of(item.uri), folder)}:{item.selection_range.start.line + 1}"
    return f"{place}: {_kind(item.kind)} {item.name}"


def _place(symbol: Symbol) -> tuple[str, Position]:
    return symbol.location.place if symbol.location else ("", Position(0, 0))


def _kind(number: int) -> str:
    return KINDS[number - 1] if 0 < number <= len(KINDS) else "symbol"


def _shown(path: str, folder: Path) -> str:
    return os.path.relpath(path, folder) if path.startswith(f"{folder}/") else path


def _lines(path: str) -> list[str]:
    try:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > _SHOWN_BYTES:
            return []
        return file.read_bytes().decode(errors="replace").split("\n")
    except OSError:
        return []


def _decoded(raw: msgspec.Raw, kind: Any) -> Any:  # noqa: ANN401 - the type, and its value
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise ToolError(f"the language server's answer cannot be read: {error}") from error
