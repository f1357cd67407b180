"""The open documents of a language server: their current texts, and the diagnostics for them."""

import asyncio
import os
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from pegboard import ToolError
from pegboard_plugins.lsp.client import LSPClient

MOST_DOCUMENTS = 50
LONGEST_BYTES = 2 << 20

Stamp = tuple[int, int, int]


@dataclass(slots=True)
class Document:
    """An open document.

    `found` are the server's diagnostics, or None before the first. The document is `stale` if other
    files have changed since the server checked it. `known` counts the errors that `look` has
    already seen, by message.
    """

    text: str
    stamp: Stamp
    version: int = 1
    found: Sequence[types.Diagnostic] | None = None
    stale: bool = False
    known: Counter[str] | None = None

    def look(self) -> list[types.Diagnostic]:
        """Return the errors that are new since this method's last call; [] at the first call."""
        if self.found is None:
            return []
        before, self.known = self.known, Counter(each.message for each in errors(self.found))
        if before is None:
            return []
        new = self.known - before
        return [each for each in errors(self.found) if each.message in new]


class TextDocuments:
    """The documents open in a language server, the longest unused first.

    `heard` tells whether the server has sent diagnostics since files changed. The event `news` is
    set when diagnostics arrive.
    """

    def __init__(self, client: LSPClient, languages: Mapping[str, str]) -> None:
        self.heard = True
        self.news = asyncio.Event()
        self._client = client
        self._languages = languages
        self._open: OrderedDict[Path, Document] = OrderedDict()

    def latest(self) -> list[tuple[Path, Document]]:
        """Return the open documents with their paths, the last used first."""
        return list(reversed(self._open.items()))

    async def open(self, path: Path) -> Document:
        """Open the document in the server with the file's current content.

        :raises ToolError: when it cannot be read, or is too long.
        """
        text, stamp = await asyncio.to_thread(_read, path)
        document = self._open.get(path)
        if document is None:
            document = self._open[path] = Document(text, stamp)
            kind = self._languages.get(path.suffix.lower(), "")
            item = types.TextDocumentItem(path.as_uri(), kind, document.version, text)
            self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))
            while len(self._open) > MOST_DOCUMENTS:
                self._close(next(iter(self._open)))
        else:
            document.stamp = stamp
            self._change(path, document, text)
        self._open.move_to_end(path)
        return document

    async def refresh(self) -> bool:
        """Send changed documents to the server; return whether there were any."""
        stamps = {path: document.stamp for path, document in self._open.items()}
        altered = await asyncio.to_thread(_altered, stamps)
        for path, now in altered.items():
            document = self._open.get(path)
            if document is None:
                continue  # it was closed meanwhile
            if now is None:
                self._close(path)
            else:
                text, document.stamp = now
                self._change(path, document, text)
        return bool(altered)

    def doubt(self) -> None:
        """Mark the diagnostics of all documents as outdated, because files have changed."""
        self.heard = False
        for document in self._open.values():
            document.stale = True
            if document.known is None:
                document.look()  # what stood before the change is no news

    def paths(self) -> tuple[Path, ...]:
        """Return the paths of the open documents."""
        return tuple(self._open)

    def published(self, path: Path, params: types.PublishDiagnosticsParams) -> None:
        """Store a document's diagnostics, unless they are outdated or the document is closed."""
        document = self._open.get(path)
        if document is None or (params.version or document.version) < document.version:
            return
        document.found = params.diagnostics
        self.heard = True
        self.news.set()

    def ask_anew(self, path: Path, document: Document) -> None:
        """Send a new version of a document, so that the server checks the document again."""
        document.version += 1
        document.found, document.stale = None, False
        self._client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(document.version, path.as_uri()),
                [types.TextDocumentContentChangeWholeDocument(document.text)],
            )
        )

    def _change(self, path: Path, document: Document, text: str) -> None:
        if document.text == text:
            return
        document.text = text
        self.ask_anew(path, document)
        self._client.text_document_did_save(
            types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(path.as_uri()))
        )

    def _close(self, path: Path) -> None:
        del self._open[path]
        identifier = types.TextDocumentIdentifier(path.as_uri())
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))


def errors(found: Sequence[types.Diagnostic]) -> list[types.Diagnostic]:
    """Return the diagnostics that are errors or have no severity."""
    kinds = (None, types.DiagnosticSeverity.Error)
    return [each for each in found if each.severity in kinds]


def _altered(stamps: Mapping[Path, Stamp]) -> dict[Path, tuple[str, Stamp] | None]:
    """Return the new content of files with changed size or time; None for unreadable files."""
    found: dict[Path, tuple[str, Stamp] | None] = {}
    for path, stamp in stamps.items():
        with suppress(OSError):
            if _stamp(path.stat()) == stamp:
                continue
        found[path] = None
        with suppress(ToolError):
            found[path] = _read(path)
    return found


def _read(path: Path) -> tuple[str, Stamp]:
    try:
        facts = path.stat()
        if facts.st_size > LONGEST_BYTES:
            raise ToolError(f"{path} is too long for a language server")
        return path.read_bytes().decode(errors="replace"), _stamp(facts)
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from error


def _stamp(facts: os.stat_result) -> Stamp:
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
