"""Requests of the Responses API that continue a stored response, and only send what is new.

A request names a response in `previous_response_id` if it begins with exactly the bytes of that
response's request and answer. Any other request sends its whole input, for example after
compaction, undo or a change of the model.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

import msgspec

from pegboard.errors import ProviderError
from pegboard.http import (
    AnswerBlock,
    Endpoint,
    HttpProvider,
    Post,
    WireFormat,
    decode_json,
    encode_json,
)
from pegboard.providers import (
    Call,
    Content,
    Heartbeat,
    Keys,
    ModelRequest,
    Reasoning,
    StreamEvent,
    Text,
)
from pegboard.schema.model import Model
from pegboard_plugins.openai_compatible.responses import (
    OWN,
    encode,
    encode_answer,
    encode_fields,
    encode_history,
    post,
)
from pegboard_plugins.openai_compatible.responses_answer import ResponseReader

MOST_SESSIONS = 64
"""Each holds the encoded history of a session; older ones send their whole input once."""
MOST_LOST = 2
"""The lost responses in a row after which a server is assumed to store none."""


class StoredRequest(msgspec.Struct, frozen=True):
    """A request that the server has stored, with the id of the response it continues, or ""."""

    session_id: str
    previous_id: str
    fields: bytes
    items: Sequence[bytes]


class Stored(msgspec.Struct, frozen=True):
    """A stored response: its id, with the request and the answer that the server has stored.

    A later request can continue the response if it has equal `fields`, and begins with these
    `items`.
    """

    id: str
    fields: bytes
    items: Sequence[bytes]


class Chains:
    """The newest stored response of each session."""

    def __init__(self) -> None:
        self._stored: dict[str, Stored] = {}
        self._lost = 0

    def is_on(self, request: ModelRequest) -> bool:
        """Return whether the server may store the response to the request."""
        stores = request.options.get("store", True) is not False
        return stores and bool(request.session_id) and self._lost < MOST_LOST

    def previous(self, session_id: str, fields: bytes, items: Sequence[bytes]) -> Stored | None:
        """Return the stored response that the request continues, or None if it continues none."""
        stored = self._stored.get(session_id)
        if stored is None or stored.fields != fields or len(items) <= len(stored.items):
            return None
        return stored if items[: len(stored.items)] == stored.items else None

    def note(self, asked: StoredRequest, response_id: str, answer: bytes) -> None:
        """Record a response as the newest of the session in which it was requested."""
        if asked.previous_id:
            self._lost = 0
        self._stored.pop(asked.session_id, None)
        stored = Stored(response_id, asked.fields, [*asked.items, answer])
        self._stored[asked.session_id] = stored
        if len(self._stored) > MOST_SESSIONS:
            del self._stored[next(iter(self._stored))]

    def forget(self, session_id: str, error: ProviderError) -> bool:
        """Forget a session's response if the error is about this response; return whether it is."""
        stored = self._stored.get(session_id)
        texts = f"{error} {error.body}"
        if stored is None or not (stored.id in texts or "previous_response" in texts):
            return False
        del self._stored[session_id]
        self._lost += 1
        return True


class ChainedProvider(HttpProvider):
    """A provider of the Responses API with requests that continue the session's last response."""

    def __init__(
        self,
        endpoint: Endpoint,
        wire: Callable[[Model], WireFormat],
        *,
        environ: Mapping[str, str],
        keys: Keys,
    ) -> None:
        self._chains = Chains()

        def chained(model: Model) -> WireFormat:
            found = wire(model)
            if found.encode is not encode:
                return found
            linked = _Linked(self._chains)
            return WireFormat(encode=linked.encode, reader=lambda _: linked)

        super().__init__(endpoint, chained, environ=environ, keys=keys)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer; send the whole input again if the server has lost the response."""
        begun = False
        try:
            async with aclosing(super().stream(request)) as events:
                async for event in events:
                    begun = begun or not isinstance(event, Heartbeat)
                    yield event
        except ProviderError as error:
            if begun or not self._chains.forget(request.session_id, error):
                raise
        else:
            return
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                yield event


class _Linked(ResponseReader):
    """A reader of responses, which also encodes the request, if possible as a continuation."""

    def __init__(self, chains: Chains) -> None:
        super().__init__()
        self._chains = chains
        self._asked: StoredRequest | None = None

    def encode(self, request: ModelRequest, endpoint: Endpoint, key: str) -> Post:
        """Return the request without the items that the server has stored."""
        is_on = self._chains.is_on(request)
        fields, items = encode_fields(request, store=is_on), encode_history(request)
        if not is_on:
            return post(endpoint, key, fields, items)
        previous = self._chains.previous(request.session_id, fields, items)
        self._asked = StoredRequest(
            request.session_id, previous.id if previous else "", fields, items
        )
        if previous is None:
            return post(endpoint, key, fields, items)
        named = b'%b,"previous_response_id":%b}' % (fields[:-1], encode_json(previous.id))
        return post(endpoint, key, named, items[len(previous.items) :])

    def end(self) -> Iterator[StreamEvent]:
        """Record a complete response, and return the last events."""
        response_id = self.response.get("id")
        if self._asked and response_id and self.response.get("status") == "completed":
            with suppress(ValueError):  # the arguments of a call, which the model has written
                answer = encode_answer(tuple(_contents(self.items)))
                self._chains.note(self._asked, str(response_id), answer)
        return super().end()


def _contents(items: Iterable[tuple[Mapping[str, Any], AnswerBlock]]) -> Iterator[Content]:
    """Yield the parts of an answer in the form in which the next request's history has them."""
    for item, block in items:
        match item.get("type"):
            case "message":
                yield Text(text=block.text.rstrip(), metadata=_own(item, "id", "phase"))
            case "function_call":
                arguments = decode_json(str(item.get("arguments") or "{}").encode())
                own = _own(item, "id")
                yield Call(str(item.get("call_id")), str(item.get("name")), arguments, own)
            case "reasoning":
                own = _own(item, "id", "encrypted_content")
                yield Reasoning(text=block.text.rstrip(), metadata=own)
            case _:
                yield Reasoning(text="", metadata={OWN: {"item": dict(item)}})


def _own(item: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {OWN: {name: item[name] for name in names if item.get(name)}}
