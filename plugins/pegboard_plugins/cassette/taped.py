"""Providers that record their answers in a file, and replay them from it."""

import asyncio
import errno
import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import msgspec

from pegboard import InvalidInputError
from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError, ToolSchemaError
from pegboard.providers import (
    Heartbeat,
    ModelRequest,
    Provider,
    ReasoningDelta,
    StreamEvent,
    StreamFinish,
    TextDelta,
    ToolInputDelta,
)
from pegboard.schema.model import Model
from pegboard_plugins.cassette.canonical import Wording, digest, lines_of, matched, played

_log = logging.getLogger("pegboard.cassette")
_DELTAS = (TextDelta, ReasoningDelta, ToolInputDelta)
_EVENTS = {each.__name__: each for each in StreamEvent.__args__}
_ERRORS = {
    each.__name__: each
    for each in (ProviderError, ProviderAuthError, ContextOverflowError, ToolSchemaError)
}
_JSON_FIELDS = {"ToolCall": "input", "ToolInputDelta": "text"}
"""Texts that a tool is called with."""
_DIFF_LINES = 40
_LINE_LENGTH = 200


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording file: a request in its canonical form, and the answer or error.

    `model` holds the facts of the model, but only in the first record of each model.
    """

    key: str
    request: dict[str, Any]
    events: list[dict[str, Any]]
    error: dict[str, Any] | None = None
    model: dict[str, Any] | None = None


class Tape:
    """The records of a file, each replayed once and in order.

    The last record of a request is replayed again and again. The mode `replay` writes no record,
    and `record` replays none. `match_on` names the fields that two requests must share to count
    as equal; empty means all.
    """

    def __init__(
        self, file: Path, mode: str, records: Sequence[Record], match_on: Sequence[str] = ()
    ) -> None:
        self.file = file
        self.mode = mode
        self._match_on = match_on
        self._records = list(records)
        self._waiting: dict[str, list[Record]] = {}
        self._writing = asyncio.Lock()
        self._named = {record.request.get("model") for record in records if record.model}
        for record in records:
            self._waiting.setdefault(matched(record.request, match_on), []).append(record)

    def models(self, directory: Path) -> Mapping[tuple[str, str], Model]:
        """Return the recorded models by provider and id, or nothing unless the mode is `replay`.

        Models of requests with tools come first.
        """
        if self.mode != "replay":
            return {}
        ordered = sorted(self._records, key=lambda each: not each.request.get("tools"))
        stored = (each.model for each in ordered if each.model)
        models = (msgspec.convert(played(each, directory), Model) for each in stored)
        return {(each.provider_id, each.id): each for each in models}

    def find(self, canonical: Mapping[str, Any]) -> Record | None:
        """Return the record to replay for a request, or None if the provider must answer."""
        if self.mode == "record":
            return None
        known = self._waiting.get(matched(canonical, self._match_on))
        if not known:
            return None
        return known.pop(0) if len(known) > 1 else known[0]

    def miss(self, canonical: Mapping[str, Any]) -> ProviderError:
        """Return the error for a request without a record; log the diff to the nearest record."""
        wanted = list(lines_of(canonical))
        at, nearest = max(
            enumerate(self._records, 1),
            key=lambda found: len({*lines_of(found[1].request)} & {*wanted}),
            default=(0, None),
        )
        text = f"this request is not on {self.file}"
        if nearest is None:
            return ProviderError(f"{text}, which is empty")
        known = list(lines_of(nearest.request))
        diff = list(unified_diff(known, wanted, f"line {at}", "this request", n=1, lineterm=""))
        shown = "\n".join(line[:_LINE_LENGTH] for line in diff[:_DIFF_LINES])
        more = f"\n({len(diff) - _DIFF_LINES} lines more)" if len(diff) > _DIFF_LINES else ""
        _log.error("a request is not on the tape; what it has for the nearest:\n%s%s", shown, more)
        return ProviderError(
            f"{text}; the nearest is its line {at}, and the log has the difference"
        )

    async def add(self, record: Record) -> None:
        """Append a record to the recording file; a failed write leaves the file unchanged.

        :raises ProviderError: when the record cannot be written.
        """
        async with self._writing:
            try:
                await asyncio.to_thread(self._append, msgspec.json.encode(record) + b"\n")
            except OSError as error:
                text = f"the answer cannot be recorded in {self.file}: {error.strerror}"
                raise ProviderError(text) from error
            self._records.append(record)

    def names(self, canonical: Mapping[str, Any]) -> bool:
        """Return whether a record has the model's facts; note that the next record will."""
        name = canonical["model"]
        is_known = name in self._named
        self._named.add(name)
        return is_known

    def _append(self, line: bytes) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        opened = os.open(self.file, flags, 0o600)
        try:
            before = os.fstat(opened).st_size
            written = os.write(opened, line)  # at once, so that no reader gets a part of it
            if written < len(line):
                os.ftruncate(opened, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(opened)


async def open_tape(file: Path, mode: str, match_on: Sequence[str] = ()) -> Tape:
    """Open the tape of a file; the mode `record` deletes the file first.

    :raises InvalidInputError: when the file cannot be read, or a line is not a complete record.
    """
    return await asyncio.to_thread(_open, file, mode, match_on)


def _open(file: Path, mode: str, match_on: Sequence[str]) -> Tape:
    try:
        if mode == "record":
            file.unlink(missing_ok=True)
        content = b"" if mode != "replay" and not file.exists() else file.read_bytes()
    except OSError as error:
        text = f"the cassette {file} cannot be used: {error.strerror}"
        raise InvalidInputError(text) from error
    records: list[Record] = []
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        if fault := _fault_of(line, records):
            raise InvalidInputError(
                f"{file}, line {number}: {fault}; nothing is played. Delete the line, or record "
                f"the file again with `--record {file}`"
            )
    return Tape(file, mode, records, match_on)


def _fault_of(line: bytes, records: list[Record]) -> str:
    """Check one line: append its record to `records` and return "", or return what is wrong."""
    if not line.endswith(b"\n"):
        return "the record is cut off"
    try:
        record = msgspec.json.decode(line, type=Record)
        for event in record.events:
            msgspec.convert(_fields_of(event), _EVENTS[event["event"]])
        whole = record.error is not None or (
            bool(record.events) and record.events[-1]["event"] == StreamFinish.__name__
        )
        if record.error is not None:
            _error_of(record.error, "")
        if record.model is not None:
            msgspec.convert(record.model, Model)
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        return f"this is no record: {error}"
    if not whole:
        return "the record has no end of the answer"
    if digest(record.request) != record.key:
        return "the record is damaged: its key is not that of its request"
    records.append(record)
    return ""


def _fields_of(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "event"}


class Unasked:
    """A provider that exists only in the recordings; it cannot answer a new request."""

    env: Sequence[str] = ()

    def __init__(self, provider_id: str) -> None:
        self.id = provider_id
        self.name = provider_id

    def models(self) -> Sequence[Model]:
        """Return no models: `Taped`, which wraps this provider, adds the recorded ones."""
        return ()

    def resolve(self, model_id: str) -> Model | None:  # noqa: ARG002 - the protocol's
        """Return None: `Taped`, which wraps this provider, resolves the recorded models."""
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Raise an error, because there is no provider to ask.

        :raises ProviderError: always.
        """
        raise ProviderError(f"only the tape has {request.model.id}", provider_id=self.id)
        yield  # type: ignore[unreachable]  # what makes it a generator

    async def aclose(self) -> None:
        """Do nothing; there is no connection to close."""


class Taped:
    """A provider that replays a recorded answer, or asks the wrapped provider and records it."""

    def __init__(self, provider: Provider, tape: Tape, wording: Wording, directory: Path) -> None:
        self._provider = provider
        self._tape = tape
        self._wording = wording
        self._directory = directory
        self._models = tape.models(directory)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the provider has beyond the protocol
        return getattr(self._provider, name)

    @property
    def id(self) -> str:
        """The id of the wrapped provider."""
        return self._provider.id

    @property
    def name(self) -> str:
        """The name of the wrapped provider."""
        return self._provider.name

    @property
    def env(self) -> Sequence[str]:
        """The environment variables of the wrapped provider."""
        return self._provider.env

    def models(self) -> Sequence[Model]:
        """Return the models of the wrapped provider."""
        return self._provider.models()

    def resolve(self, model_id: str) -> Model | None:
        """Return the recorded model, or else the model that the wrapped provider resolves."""
        return self._models.get((self.id, model_id)) or self._provider.resolve(model_id)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the recorded answer, or the provider's answer if there is no record.

        :raises ProviderError: when the mode is `replay` and there is no record, or the recorded
            answer ended with this error.
        """
        canonical = self._wording.canonical(request)
        if record := self._tape.find(canonical):
            for event in played(record.events, self._directory):
                yield msgspec.convert(_fields_of(event), _EVENTS[event["event"]])
            if record.error is not None:
                raise _error_of(record.error, self.id)
            return
        if self._tape.mode == "replay":
            raise self._tape.miss(canonical)
        answer = _RecordedAnswer()
        try:
            async for event in self._provider.stream(request):
                answer.hear(event)
                yield event
        except ProviderError as error:
            await self._keep(request.model, canonical, answer, error)
            raise
        if answer.finished:
            await self._keep(request.model, canonical, answer, None)

    async def aclose(self) -> None:
        """Close the wrapped provider."""
        await self._provider.aclose()

    async def _keep(
        self,
        model: Model,
        canonical: dict[str, Any],
        answer: "_RecordedAnswer",
        error: ProviderError | None,
    ) -> None:
        facts = {**msgspec.to_builtins(model), "headers": {}, "api": {"id": model.api.id}}
        record = Record(
            key=digest(canonical),
            request=canonical,
            events=[self._store(event) for event in answer.events],
            error=self._wording.stored(_facts_of(error)) if error else None,
            model=None if self._tape.names(canonical) else self._wording.stored(facts),
        )
        await self._tape.add(record)

    def _store(self, event: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = self._wording.stored(event)
        field = _JSON_FIELDS.get(event["event"])
        return {**told, field: self._wording.stored_json(event[field])} if field else told


class _RecordedAnswer:
    """Collects the events of an answer; it joins the deltas of a block, so that no key is split."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._blocks: dict[tuple[str, str], dict[str, Any]] = {}
        self.finished = False

    def hear(self, event: StreamEvent) -> None:
        if isinstance(event, Heartbeat):  # of this one time
            return
        kind = type(event).__name__
        told = {"event": kind, **msgspec.to_builtins(event)}
        self.finished |= isinstance(event, StreamFinish)
        if isinstance(event, _DELTAS):
            block = self._blocks.get((kind, event.id))
            if block is not None:
                block["text"] += event.text
                return
            self._blocks[kind, event.id] = told
        self.events.append(told)


def _facts_of(error: ProviderError) -> dict[str, Any]:
    kind = type(error).__name__
    return {
        "kind": kind if kind in _ERRORS else ProviderError.__name__,
        "text": str(error),
        "status": error.status,
        "retryable": error.retryable,
        "tools": list(getattr(error, "tools", ())),
        "keyword": getattr(error, "keyword", ""),
    }


def _error_of(facts: Mapping[str, Any], provider_id: str) -> ProviderError:
    kind = _ERRORS[facts["kind"]]
    status, retryable = facts["status"], facts["retryable"]
    error = kind(facts["text"], provider_id=provider_id, status=status, retryable=retryable)
    if isinstance(error, ToolSchemaError):
        error.tools, error.keyword = tuple(facts["tools"]), facts["keyword"]
    return error
