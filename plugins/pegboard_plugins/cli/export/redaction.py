"""The redaction of a session: known keys, strings that look like secrets, and the home folder."""

import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote_to_bytes

import msgspec
from msgspec.structs import fields, replace

from pegboard.plugins import redact
from pegboard.unstable import secret_values, without_values

HIDDEN = "[secret]"
KNOWN = "known secrets"
FORMED = "strings in the form of a secret"
HOME = "paths of the home folder"
_DATA_URL = re.compile(r"(data:[\w.+/;=-]*),(\S*)")
_WORDS = ("typing.Literal[", "typing.Optional[typing.Literal[")
_Value = TypeVar("_Value", bound=msgspec.Struct)


class Redaction:
    """A redactor that replaces secrets and the home folder in values, and counts them by kind.

    `values` are the known secrets. Ids and enumerated values such as `"user"` stay, so that the
    result is still a valid session. Keys in the `input` and `metadata` of a call are redacted, too.
    """

    def __init__(self, values: Iterable[str], home: Path) -> None:
        self.counts: Counter[str] = Counter()
        self._values = tuple(values)
        self._done: dict[str, tuple[str, tuple[tuple[str, int], ...]]] = {}
        paths = {str(home), str(home.resolve()), quote(str(home))} - {"/"}
        self._home = re.compile(
            rf"(?<![\w.-])(?:{'|'.join(map(re.escape, sorted(paths)))})(?![\w-])" if paths else "$^"
        )

    def apply(self, value: _Value) -> _Value:
        """Return a copy of the struct with all free text redacted."""
        changes = {name: self._redact(getattr(value, name)) for name in _free_fields(type(value))}
        return replace(value, **changes)

    def text(self, text: str) -> str:
        """Return the string with secrets and the home folder redacted."""
        if found := _DATA_URL.fullmatch(text):
            return self._data_url(found[1], found[2])
        if text not in self._done:  # calls store their output twice
            known = without_values(text, self._values)
            formed = redact(known)
            homeless, homes = self._home.subn("~", formed)
            counts = (
                (KNOWN, known.count(HIDDEN) - text.count(HIDDEN)),
                (FORMED, formed.count(HIDDEN) - known.count(HIDDEN)),
                (HOME, homes),
            )
            self._done[text] = homeless, counts
        homeless, hidden = self._done[text]
        for kind, number in hidden:
            self._count(kind, number)
        return homeless

    def _redact(self, value: Any) -> Any:  # noqa: ANN401 - JSON, or a struct of the schema
        match value:
            case str():
                return self.text(value)
            case msgspec.Struct():
                return self.apply(value)
            case dict():
                return {
                    self.text(name): self._redact_at(name, each) for name, each in value.items()
                }
            case list():
                return [self._redact(each) for each in value]
            case tuple():
                return tuple(self._redact(each) for each in value)
            case _:
                return value

    def _redact_at(self, name: str, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Return a mapping's value redacted; hide a text with a key `name` such as `password`."""
        if isinstance(value, str) and secret_values({name: value}):
            self._count(FORMED, 1)
            return HIDDEN
        return self._redact(value)

    def _data_url(self, head: str, body: str) -> str:
        """Return a data URL redacted; decode base64 text first, because base64 hides secrets."""
        try:
            is_base64 = head.endswith(";base64")
            content = (b64decode(body) if is_base64 else unquote_to_bytes(body)).decode()
        except ValueError:
            return without_values(f"{head},{body}", self._values)
        plain = self.text(content)
        if plain == content:
            return f"{head},{body}"
        head = head if is_base64 else f"{head};base64"
        return f"{head},{b64encode(plain.encode()).decode()}"

    def _count(self, kind: str, number: int) -> None:
        if number > 0:
            self.counts[kind] += number

    def report(self) -> str:
        """Return a line with the number of redactions by kind."""
        if not self.counts:
            return "nothing had to be redacted"
        each = (f"{kind} {number:,}" for kind, number in sorted(self.counts.items()))
        return f"redacted: {', '.join(each)}"


@cache
def _free_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of a struct's fields that may contain free text: no ids, no enumerations."""
    return tuple(
        each.name
        for each in fields(kind)
        if each.name != "id"
        and not each.name.endswith("_id")
        and not str(each.type).startswith(_WORDS)
    )
