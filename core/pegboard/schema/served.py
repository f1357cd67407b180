"""What a server tells beside the domain's values: its health, files, and what can be used."""

from typing import Literal

import msgspec

from pegboard.schema.model import ProviderListing
from pegboard.schema.wire import Rest, Wire


class Health(Rest, frozen=True):
    """That the server answers, and what it is."""

    healthy: bool
    version: str


class ConfiguredProviders(Rest, frozen=True):
    """The providers that can be used, and the model of each that is taken unasked."""

    providers: tuple[ProviderListing, ...]
    default: dict[str, str]


class FileNode(Rest, frozen=True):
    """One entry of a folder; `ignored` is what git would not look at."""

    name: str
    path: str
    absolute: str
    type: Literal["file", "directory"]
    ignored: bool


class FileContent(Wire, frozen=True):
    """What is in a file; binary content is base64, or left out when nobody can show it."""

    type: Literal["text", "binary"]
    content: str
    encoding: str | None = None
    mime_type: str | None = None


class FileChange(Rest, frozen=True):
    """One file that differs from the last commit, with the lines added and removed."""

    path: str
    added: int
    removed: int
    status: Literal["added", "deleted", "modified"]


class Shown(Rest, frozen=True):
    """A text as ripgrep tells it."""

    text: str


class Submatch(Rest, frozen=True):
    """Where in the line the pattern is, in bytes."""

    match: Shown
    start: int
    end: int


class Match(Rest, frozen=True):
    """One line that matches, in the shape of ripgrep's JSON."""

    path: Shown
    lines: Shown
    line_number: int = msgspec.field(name="line_number")
    absolute_offset: int = msgspec.field(name="absolute_offset")
    submatches: tuple[Submatch, ...] = ()
