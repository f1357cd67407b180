"""The queries to a language server, with answers as lines for a model."""

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from lsprotocol import types

from pegboard import ToolError
from pegboard_plugins.lsp.columns import to_letters, to_units
from pegboard_plugins.lsp.server import LanguageServer, path_of

LONGEST_LINE = 200
_NOT_SHOWN = "(not shown: read would ask)"
_SHOWN_BYTES = 2 << 20
"""Longer files are not read to show the line of a place in them."""


class SymbolPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A position in a file, counted from 1 in lines and characters, or the text of a query.

    `may_show` tells whether lines of a file may be shown without a permission, since the server
    names the files in its answers.
    """

    path: Path
    line: int
    character: int
    query: str
    folder: Path
    may_show: Callable[[str], bool]


async def hover(server: LanguageServer, question: SymbolPlace) -> list[str]:
    """Return the server's information about the symbol at the position in `question`."""
    params = types.HoverParams(*await _asked(server, question))
    found = await server.client.text_document_hover_async(params)
    text = _hover_text(found.contents) if found else ""
    return [text] if text else []


async def definition(server: LanguageServer, question: SymbolPlace) -> list[str]:
    """Return where the symbol is defined."""
    params = types.DefinitionParams(*await _asked(server, question))
    found = await server.client.text_document_definition_async(params)
    return _placed(server, found, question)


async def implementation(server: LanguageServer, question: SymbolPlace) -> list[str]:
    """Return where the symbol is implemented."""
    params = types.ImplementationParams(*await _asked(server, question))
    found = await server.client.text_document_implementation_async(params)
    return _placed(server, found, question)


async def references(server: LanguageServer, question: SymbolPlace) -> list[str]:
    """Return the uses of the symbol, its definition included."""
    context = types.ReferenceContext(include_declaration=True)
    params = types.ReferenceParams(context, *await _asked(server, question))
    found = await server.client.text_document_references_async(params)
    return _placed(server, found, question)


async def document_symbols(server: LanguageServer, question: SymbolPlace) -> list[str]:
    """Return the symbols of the file in `question`, indented by nesting."""
    params = types.DocumentSymbolParams(await server.open(question.path))
    found = await server.client.text_document_document_symbol_async(params)
    return [line for symbol in found or () for line in _outline(symbol)]


async def workspace_symbols(server: LanguageServer, question: SymbolPlace) -> list[str]:
    """Return the symbols of the project whose name matches the query."""
    await server.open(question.path)
    params = types.WorkspaceSymbolParams(question.query)
    found = await server.client.workspace_symbol_async(params)
    return [_symbol(each, question.folder) for each in found or ()]


async def incoming_calls(server: LanguageServer, question: SymbolPlace) -> list[str]:
    """Return the functions that call the function at the position."""
    found: list[types.CallHierarchyIncomingCall] = []
    for item in await _prepared(server, question):
        params = types.CallHierarchyIncomingCallsParams(item)
        found += await server.client.call_hierarchy_incoming_calls_async(params) or ()
    return [_called(call.from_, question.folder) for call in found]


async def outgoing_calls(server: LanguageServer, question: SymbolPlace) -> list[str]:
    """Return the functions that the function at the position calls."""
    found: list[types.CallHierarchyOutgoingCall] = []
    for item in await _prepared(server, question):
        params = types.CallHierarchyOutgoingCallsParams(item)
        found += await server.client.call_hierarchy_outgoing_calls_async(params) or ()
    return [_called(call.to, question.folder) for call in found]


async def call_items(server: LanguageServer, question: SymbolPlace) -> list[str]:
    """Return the function at the position, from which queries about calls start."""
    return [_called(item, question.folder) for item in await _prepared(server, question)]


async def diagnostics(server: LanguageServer, question: SymbolPlace) -> list[str]:
    """Return the server's diagnostics for the file in `question`, errors first."""
    found = sorted(await server.diagnostics(question.path, patient=True), key=_severity)
    return [
        f"{each.range.start.line + 1}:{each.range.start.character + 1}:"
        f" {_severity(each).name.lower()}: {each.message}"
        for each in found
    ]


OPERATIONS: Mapping[str, Callable[[LanguageServer, SymbolPlace], Awaitable[list[str]]]] = {
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


async def _asked(
    server: LanguageServer, question: SymbolPlace
) -> tuple[types.TextDocumentIdentifier, types.Position]:
    return await server.open(question.path), _position(server, question)


def _position(server: LanguageServer, question: SymbolPlace) -> types.Position:
    """Return the position in the server's code units."""
    lines = _lines(str(question.path))
    if not 0 < question.line <= len(lines):
        raise ToolError(f"{question.path} has {len(lines)} lines, not {question.line}")
    if question.character < 1:
        raise ToolError(f"character counts from 1, and is {question.character}")
    units = to_units(lines[question.line - 1], question.character - 1, server.encoding)
    return types.Position(question.line - 1, units)


def _placed(
    server: LanguageServer,
    found: types.Location | Sequence[types.Location] | Sequence[types.LocationLink] | None,
    question: SymbolPlace,
) -> list[str]:
    """Return a line for each location, with its code if permission rules allow showing the file."""
    texts: dict[str, list[str] | None] = {}
    placed = []
    for each in [found] if isinstance(found, types.Location) else found or ():
        path, start = _start(each)
        if path not in texts:
            texts[path] = _lines(path) if question.may_show(path) else None
        lines = texts[path]
        text = lines[start.line] if lines is not None and start.line < len(lines) else ""
        letter = to_letters(text, start.character, server.encoding) if text else start.character
        shown = _NOT_SHOWN if lines is None else text.strip()[:LONGEST_LINE]
        place = f"{_relative(path, question.folder)}:{start.line + 1}:{letter + 1}"
        placed.append(f"{place}: {shown}")
    return placed


def _start(found: types.Location | types.LocationLink) -> tuple[str, types.Position]:
    if isinstance(found, types.LocationLink):
        return path_of(found.target_uri), found.target_selection_range.start
    return path_of(found.uri), found.range.start


def _hover_text(
    contents: types.MarkupContent | types.MarkedString | Sequence[types.MarkedString],
) -> str:
    """Return the text of a hover answer."""
    if isinstance(contents, str | types.MarkupContent | types.MarkedStringWithLanguage):
        return (contents if isinstance(contents, str) else contents.value).strip()
    return "\n\n".join(filter(None, map(_hover_text, contents)))


def _outline(
    symbol: types.DocumentSymbol | types.SymbolInformation, depth: int = 0
) -> Iterator[str]:
    """Yield lines for the symbol and the symbols inside it."""
    if isinstance(symbol, types.SymbolInformation):
        start, children = symbol.location.range.start, None
    else:
        start, children = symbol.selection_range.start, symbol.children
    yield f"{'  ' * depth}{start.line + 1}: {_kind(symbol.kind)} {symbol.name}"
    for child in children or ():
        yield from _outline(child, depth + 1)


async def _prepared(
    server: LanguageServer, question: SymbolPlace
) -> Sequence[types.CallHierarchyItem]:
    params = types.CallHierarchyPrepareParams(*await _asked(server, question))
    return await server.client.text_document_prepare_call_hierarchy_async(params) or ()


def _called(item: types.CallHierarchyItem, folder: Path) -> str:
    place = f"{_relative(path_of(item.uri), folder)}:{item.selection_range.start.line + 1}"
    return f"{place}: {_kind(item.kind)} {item.name}"


def _symbol(symbol: types.SymbolInformation | types.WorkspaceSymbol, folder: Path) -> str:
    where = symbol.location
    line = where.range.start.line if isinstance(where, types.Location) else 0
    place = f"{_relative(path_of(where.uri), folder)}:{line + 1}"
    return f"{place}: {_kind(symbol.kind)} {symbol.name}"


def _kind(kind: types.SymbolKind) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.name).lower()


def _severity(found: types.Diagnostic) -> types.DiagnosticSeverity:
    return found.severity or types.DiagnosticSeverity.Error


def _relative(path: str, folder: Path) -> str:
    return os.path.relpath(path, folder) if path.startswith(f"{folder}/") else path


def _lines(path: str) -> list[str]:
    try:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > _SHOWN_BYTES:
            return []
        return file.read_bytes().decode(errors="replace").split("\n")
    except OSError:
        return []
