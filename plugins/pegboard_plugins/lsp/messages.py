"""The part of the Language Server Protocol 3.17 that is used, as values."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

ERROR = 1
"""The severity of a diagnostic that is an error."""
KINDS = (
    *("file", "module", "namespace", "package", "class", "method", "property", "field"),
    *("constructor", "enum", "interface", "function", "variable", "constant", "string"),
    *("number", "boolean", "array", "object", "key", "null", "enum member", "struct", "event"),
    *("operator", "type parameter"),
)


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A value of the protocol; fields that are not used are passed over."""


class Position(Wire, frozen=True):
    """A place in a text, both counted from 0; `character` in the units agreed upon."""

    line: int
    character: int


class Range(Wire, frozen=True):
    """A stretch of a text."""

    start: Position
    end: Position


class Diagnostic(Wire, frozen=True):
    """What a server finds in a file."""

    range: Range
    message: str
    severity: int = ERROR


class Published(Wire, frozen=True):
    """The diagnostics of a file, as a server sends them on its own."""

    uri: str
    diagnostics: tuple[Diagnostic, ...] = ()
    version: int | None = None


class Report(Wire, frozen=True):
    """The diagnostics of a file, as the answer to a request."""

    kind: str = "full"
    items: tuple[Diagnostic, ...] = ()


class Spot(Wire, frozen=True):
    """A `Location`, or a `LocationLink`, whose fields begin with `target`."""

    uri: str = ""
    range: Range | None = None
    target_uri: str = ""
    target_selection_range: Range | None = None

    @property
    def place(self) -> tuple[str, Position]:
        """The file's URI and where in it."""
        where = self.range or self.target_selection_range
        return self.uri or self.target_uri, where.start if where else Position(0, 0)


class Symbol(Wire, frozen=True):
    """A `DocumentSymbol` with what is inside, or a flat `SymbolInformation`."""

    name: str
    kind: int = 0
    location: Spot | None = None
    selection_range: Range | None = None
    container_name: str | None = None
    children: "tuple[Symbol, ...] | None" = None

    def tree(self, depth: int = 0) -> "Iterator[tuple[int, Symbol]]":
        """This symbol and those inside, each with its depth."""
        yield depth, self
        for child in self.children or ():
            yield from child.tree(depth + 1)


class CallItem(Wire, frozen=True):
    """A function in a hierarchy of calls."""

    name: str
    uri: str
    selection_range: Range
    kind: int = 0


class Call(Wire, frozen=True):
    """A call, in or out."""

    from_: CallItem | None = msgspec.field(name="from", default=None)
    to: CallItem | None = None


class _Marked(Wire, frozen=True):
    value: str


class Hover(Wire, frozen=True):
    """What is known of the thing at a place."""

    contents: "str | _Marked | list[str | _Marked]"

    @property
    def text(self) -> str:
        """The contents, in the order in which they are given."""
        given = self.contents if isinstance(self.contents, list) else [self.contents]
        texts = (each if isinstance(each, str) else each.value for each in given)
        return "\n\n".join(text.strip() for text in texts if text.strip())


def uri_of(path: Path) -> str:
    """The `file:` URI of an absolute path."""
    return path.as_uri()


def path_of(uri: str) -> str:
    """The path of a `file:` URI; any other URI as it is."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri
