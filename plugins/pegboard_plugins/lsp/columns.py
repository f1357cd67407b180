"""Columns: servers count units of an encoding, people and models count letters."""

from lsprotocol import types

_UNITS = {
    types.PositionEncodingKind.Utf8: ("utf-8", 1),
    types.PositionEncodingKind.Utf16: ("utf-16-le", 2),
    types.PositionEncodingKind.Utf32: ("utf-32-le", 4),
}
"""The codec of an encoding, and how many bytes of it are a unit."""


def encoding_of(capabilities: types.ServerCapabilities) -> types.PositionEncodingKind:
    """Return the unit that a server counts in; UTF-16 by default (LSP 3.17)."""
    said = capabilities.position_encoding
    return next((each for each in _UNITS if each == said), types.PositionEncodingKind.Utf16)


def to_units(line: str, letters: int, encoding: types.PositionEncodingKind) -> int:
    """Return how many units the first letters of a line are."""
    codec, size = _UNITS[encoding]
    return len(line[:letters].encode(codec, "surrogatepass")) // size


def to_letters(line: str, units: int, encoding: types.PositionEncodingKind) -> int:
    """Return how many letters the first units of a line are; of a line in ASCII as many."""
    if line.isascii():
        return units
    codec, size = _UNITS[encoding]
    return len(line.encode(codec, "surrogatepass")[: units * size].decode(codec, "ignore"))


def in_letters(
    found: types.Diagnostic, lines: list[str], encoding: types.PositionEncodingKind
) -> types.Diagnostic:
    """Convert the positions of a diagnostic in these lines to letters."""
    ends = (
        types.Position(place.line, _letters(place, lines, encoding))
        for place in (found.range.start, found.range.end)
    )
    return types.Diagnostic(types.Range(*ends), found.message, found.severity)


def _letters(place: types.Position, lines: list[str], encoding: types.PositionEncodingKind) -> int:
    line = lines[place.line] if place.line < len(lines) else ""
    return to_letters(line, place.character, encoding)
