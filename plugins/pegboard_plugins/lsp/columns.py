"""Conversion of columns: servers count code units, users and models count characters."""

from lsprotocol import types

_UNITS = {
    types.PositionEncodingKind.Utf8: ("utf-8", 1),
    types.PositionEncodingKind.Utf16: ("utf-16-le", 2),
    types.PositionEncodingKind.Utf32: ("utf-32-le", 4),
}
"""The codec of an encoding, and how many bytes of it are a unit."""


def encoding_of(capabilities: types.ServerCapabilities) -> types.PositionEncodingKind:
    """Return the encoding in which a server counts columns; UTF-16 by default (LSP 3.17)."""
    said = capabilities.position_encoding
    return next((each for each in _UNITS if each == said), types.PositionEncodingKind.Utf16)


def to_units(line: str, letters: int, encoding: types.PositionEncodingKind) -> int:
    """Return the number of code units in the first `letters` characters of a line."""
    codec, size = _UNITS[encoding]
    return len(line[:letters].encode(codec, "surrogatepass")) // size


def to_letters(line: str, units: int, encoding: types.PositionEncodingKind) -> int:
    """Return the number of characters in the first `units` code units of a line."""
    if line.isascii():
        return units
    codec, size = _UNITS[encoding]
    return len(line.encode(codec, "surrogatepass")[: units * size].decode(codec, "ignore"))


def in_letters(
    found: types.Diagnostic, lines: list[str], encoding: types.PositionEncodingKind
) -> types.Diagnostic:
    """Return the diagnostic with positions that count in characters of these lines."""
    ends = (
        types.Position(place.line, _letters(place, lines, encoding))
        for place in (found.range.start, found.range.end)
    )
    return types.Diagnostic(types.Range(*ends), found.message, found.severity)


def _letters(place: types.Position, lines: list[str], encoding: types.PositionEncodingKind) -> int:
    line = lines[place.line] if place.line < len(lines) else ""
    return to_letters(line, place.character, encoding)
