"""The canonical form of a request, without the parts that differ between runs.

Placeholders such as `<date>` replace ids, dates, times, durations and temporary files.
`<project>` and `<home>` replace folders. Keys, and strings that look like keys, become `[secret]`.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard.plugins import redact
from pegboard.providers import Keys, ModelRequest
from pegboard.unstable import secret_values

HIDDEN = "[secret]"
_CLOCK = r"\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:[AP]M|Z|[+-]\d{2}:?\d{2}))?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
_DATE = (
    rf"\d{{4}}-\d{{2}}-\d{{2}}|{_DAY}{_MONTH} \d{{1,2}},? \d{{4}}|{_DAY}\d{{1,2}} {_MONTH} \d{{4}}"
)
_PASSING = (
    (rf"(?:{_DATE})(?:[T ]{_CLOCK})?", "<date>"),
    (rf"\b{_CLOCK}", "<time>"),
    (r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds)\b", "<duration>"),
    (r"\b1[6-9]\d{8}(?:\d{3})?\b", "<instant>"),
)
_ID = re.compile(r"\b(ses|msg|prt|per|que|evt|run)_[0-9a-zA-Z]{12,}\b")
_CHECKOUT = re.compile(r"The checkout when this session began: [^\n]*|Git repository: (yes|no)")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


class Wording:
    """The rules that turn values into the form that is recorded, for one project and one user."""

    def __init__(self, keys: Keys, directory: Path) -> None:
        self._keys = keys
        self._places = _places(directory)
        temporary = re.escape(tempfile.gettempdir())
        self._passing = [(re.compile(rf"{temporary}/[\w.-]+"), "<tmp>")]
        self._passing += [(re.compile(shape), word) for shape, word in _PASSING]

    def stored(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON value without secrets, and with placeholders for folders."""
        secrets = self._keys.values()
        hidden = _without_secrets(value)
        return _map_strings(hidden, lambda text: self._without_places(redact(text, secrets)))

    def stored_json(self, text: str) -> str:
        """Return a string in its recorded form; a string that holds JSON remains valid JSON."""
        try:
            value = json.loads(text)
        except ValueError:
            return str(self.stored(text))
        return json.dumps(self.stored(value), ensure_ascii=False)

    def canonical(self, request: ModelRequest) -> dict[str, Any]:
        """Return the request in the form in which the recordings store and compare it."""
        numbered: dict[str, str] = {}

        def number(found: re.Match[str]) -> str:
            kind = found[1] if found.re is _ID else "uuid"
            return numbered.setdefault(found[0], f"<{kind} {len(numbered) + 1}>")

        def lasting(text: str) -> str:
            for shape, word in self._passing:
                text = shape.sub(word, text)
            return _UUID.sub(number, _ID.sub(number, text))

        told: dict[str, Any] = _map_strings(self.stored(_plain(request)), lasting)
        return told

    def _without_places(self, text: str) -> str:
        for word, place in self._places:
            text = re.sub(rf"{re.escape(place)}(?![\w-])", word, text)
        return text


def played(value: Any, directory: Path) -> Any:  # noqa: ANN401 - JSON
    """Return a recorded value in which this machine's folders replace `<project>` and `<home>`."""
    places = _places(directory)

    def with_places(text: str) -> str:
        for word, place in places:
            text = text.replace(word, place)
        return text

    return _map_strings(value, with_places)


def _places(directory: Path) -> list[tuple[str, str]]:
    places = (("<project>", str(directory)), ("<home>", str(Path.home())))
    return [(word, place) for word, place in places if place != "/"]


def digest(canonical: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a request in canonical form."""
    content = json.dumps(canonical, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()


def matched(canonical: Mapping[str, Any], match_on: Sequence[str] = ()) -> str:
    """Return the digest that identifies a recorded request: of the fields `match_on`, or of all.

    The digest ignores the state of the Git checkout, since recording itself adds a file to it.
    """
    fields = {name: canonical.get(name) for name in match_on} if match_on else dict(canonical)
    return digest(_map_strings(fields, lambda text: _CHECKOUT.sub("<checkout>", text)))


def lines_of(value: Any, at: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield the lines of a JSON value, each after its path, such as `tools.0.name: bash`."""
    if isinstance(value, dict):
        for name in sorted(value):
            yield from lines_of(value[name], f"{at}.{name}" if at else name)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from lines_of(each, f"{at}.{index}")
    else:
        yield from (f"{at}: {line}" for line in str(value).splitlines() or [""])


def _plain(request: ModelRequest) -> dict[str, Any]:
    return {
        "model": f"{request.model.provider_id}/{request.model.id}",
        "system": list(request.system),
        "messages": [
            {
                "role": message.role,
                "content": [
                    {"kind": type(each).__name__.lower(), **msgspec.to_builtins(each)}
                    for each in message.content
                ],
            }
            for message in request.messages
        ],
        "tools": [msgspec.to_builtins(tool) for tool in request.tools],
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_output_tokens": request.max_output_tokens,
        "options": msgspec.to_builtins(request.options),
        **({"output_schema": schema} if (schema := request.output_schema) is not None else {}),
    }


def _without_secrets(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON value with `[secret]` for each string whose name marks it as a secret."""
    if isinstance(value, dict):
        return {
            name: HIDDEN
            if isinstance(each, str) and secret_values({name: each})
            else each
            if isinstance(each, str)
            else _without_secrets(each)
            for name, each in value.items()
        }
    return [_without_secrets(each) for each in value] if isinstance(value, list) else value


def _map_strings(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON value with `change` applied to every string, keys of objects included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _map_strings(each, change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_map_strings(each, change) for each in value]
    return value
