"""The requests to a model over HTTP: their bodies, answers and failures."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pegboard.errors import ProviderError
from pegboard.http.client import Client
from pegboard.http.connection import Connection
from pegboard.http.encoding import SurrogatePairs
from pegboard.http.eventstream import EventStream, Shape, UnknownEncodingError
from pegboard.http.keyadvice import key_advice, required_key
from pegboard.http.refusals import Refusals
from pegboard.http.wireformat import (
    AnswerReader,
    Endpoint,
    ErrorFrameError,
    Framing,
    Post,
    WireFormat,
)
from pegboard.kit.redact import SHORTEST_VALUE
from pegboard.providers import Heartbeat, Media, ModelMessage, ModelRequest, StreamEvent
from pegboard.providers.keylookup import Key, Keys, unset_variables

if TYPE_CHECKING:
    from pegboard.http.sentmedia import SentMedia

TAIL_S = 5.0
"""How long the usage may take to arrive after the model has finished."""
LIFE_S = 0.5
"""The pause between two signs of life; the limits on silence are longer."""
COMMENTS_S = 600.0
"""How long comments, or frames without content, may come before the first content."""
ERROR_BODY_BYTES = 1 << 16
ERROR_BODY_S = 10.0
FETCH_S = 2.0
FETCH_BYTES = 1 << 20
_OK = 200
_DONE = range(200, 300)
_REDIRECTS = range(300, 400)
_LINES = ("ndjson", "jsonl", "json-lines", "jsonlines", "json-seq")
"""What types of content are called whose every line is a value."""
_HEADERS = {
    "accept": "text/event-stream",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "pegboard",
}


class Exchange:
    """The requests to one endpoint, over sockets that stay open for later requests."""

    def __init__(self, endpoint: Endpoint, environ: Mapping[str, str], keys: Keys) -> None:
        self._endpoint = endpoint
        self._keys = keys
        self._client = Client(environ, endpoint.proxy)
        self._media: SentMedia | None = None
        self._plain: tuple[ModelMessage, ...] = ()  # without pictures: a request begins as the last

    async def events(
        self, wire: WireFormat, request: ModelRequest
    ) -> AsyncGenerator[StreamEvent, None]:
        """Stream the events of the model's answer; closing this iterator closes the socket.

        :raises ProviderError: when the model cannot be asked or the answer breaks off.
        """
        place = self._endpoint
        for value in (place.url, *place.headers.values()):
            for name in unset_variables(value):
                raise ProviderError(
                    f"{place.id}: the variable {name} is not set, which the address or a header "
                    f"of `provider.{place.id}` takes; set it, or change the configuration",
                    provider_id=place.id,
                )
        found = await self._key()
        key = found.value if found else ""
        secrets = tuple(each for each in self._secrets(key) if len(each) >= SHORTEST_VALUE)
        refusals = Refusals(
            place, wire.meanings, secrets, request.tools, read_error=wire.read_error
        )
        refusals.key_advice = key_advice(place.id, place.env, refused=found)
        answer = _HTTPAnswer(wire.reader(request), refusals, first_event_s=place.first_event_s)
        following: ModelRequest | None = await self._prepared(request, wire)
        while following is not None:
            post = wire.encode(following, place, key)
            await wire.before(following, post, self._fetch)
            sending = self._post(post, following, answer.refusals, wire.framing)
            posting = asyncio.create_task(sending)
            async with aclosing(_until_done(posting)) as waits:
                async for wait in waits:
                    yield wait
            connection, over = posting.result(), False
            try:
                try:
                    stream = await answer.accepted(connection, wire.framing)
                except ProviderError as error:
                    following = self._media.without(following, error) if self._media else None
                    if following is None:
                        raise
                    continue
                if self._media:
                    self._media.taken(following)
                async with aclosing(answer.events(stream, request.idle_timeout_s)) as events:
                    async for event in events:
                        yield event
                over = True
            finally:
                self._leave(post, connection, over=over)
            following = wire.go_on(following, answer.reader)
        for event in answer.reader.end():
            yield event

    async def _prepared(self, request: ModelRequest, wire: WireFormat) -> ModelRequest:
        """Return the request with its images and PDFs adapted to the provider."""
        known, messages = self._plain, request.messages
        new = messages[len(known) :] if messages[: len(known)] == known else messages
        contents = chain.from_iterable(message.content for message in new)
        if not any(isinstance(part, Media) or getattr(part, "media", ()) for part in contents):
            self._plain = messages
            return request
        from pegboard.http.sentmedia import SentMedia  # few requests have any

        self._media = self._media or SentMedia()
        return await asyncio.to_thread(self._media.prepared, request, wire.media)

    async def _fetch(self, url: str) -> bytes:
        try:
            async with asyncio.timeout(FETCH_S):
                connection = await self._client.send(url, {"accept": "application/json"})
                found = await EventStream(connection).body(FETCH_BYTES, FETCH_S)
        except (OSError, ValueError):
            return b""
        self._client.release(url, connection)
        return found if connection.status == _OK else b""

    async def _key(self) -> Key | None:
        place = self._endpoint
        if place.env:
            return await required_key(self._keys, place.id, place.env, name=place.name)
        return await self._keys.find(place.id)

    def _secrets(self, key: str) -> Iterable[str]:
        """Yield the secret strings that errors must not contain: key, header values, URL password.

        The caller ignores short strings, such as the key `local` for a server that needs no key.
        """
        yield key
        yield from self._endpoint.headers.values()
        if password := urlsplit(self._endpoint.url).password:
            yield unquote(password)

    async def aclose(self) -> None:
        """Close the idle sockets, which are open for later requests."""
        await self._client.aclose()

    def _leave(self, post: Post, connection: Connection, *, over: bool) -> None:
        if over:
            self._client.release(post.url, connection)
        else:
            connection.abort()

    async def _post(
        self, post: Post, request: ModelRequest, refusals: Refusals, framing: Framing
    ) -> Connection:
        """Send the request, and return the connection once the response headers are there."""
        headers = dict(_HEADERS)
        if framing == "lines":
            headers["accept"] = "application/x-ndjson, application/json"
        for source in (post.headers, request.headers):
            headers.update({name.lower(): value for name, value in source.items()})
        timeout_s = self._endpoint.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await self._client.send(post.url, headers, post.body)
        except TimeoutError as error:
            raise refusals.late(f"no answer began within {timeout_s:g} s") from error
        except OSError as error:
            raise refusals.unreachable(urlsplit(post.url), error) from error
        except ValueError as error:
            raise ProviderError(
                f"{self._endpoint.id}: {error}", provider_id=self._endpoint.id
            ) from error


class _HTTPAnswer:
    """One HTTP response with a model's answer, from its headers to the end of its body."""

    def __init__(self, reader: AnswerReader, refusals: Refusals, *, first_event_s: float) -> None:
        self.reader = reader
        self.refusals = refusals
        self._first_event_s = first_event_s
        self._heard = False
        self._pairs = SurrogatePairs()

    async def events(self, stream: EventStream, idle_s: float) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events in the response body, and heartbeats until the first event.

        Before the first event, comments and empty frames also count as progress, for a limited
        time.
        """
        first_s = max(idle_s, self._first_event_s)
        most_s = max(first_s, COMMENTS_S)
        began = asyncio.get_running_loop().time()
        while not self._heard:
            left_s = most_s - (asyncio.get_running_loop().time() - began)
            reading = asyncio.create_task(self._first_frames(stream, first_s, left_s))
            async with aclosing(_until_done(reading)) as waits:
                async for wait in waits:
                    yield wait
            if not (frames := reading.result()):
                break
            for event in self._all(frames, stream):
                yield event
            if not self._heard:
                yield Heartbeat()
        else:
            while frames := await self._frames(stream, idle_s):
                for event in self._all(frames, stream):
                    yield event
        for frame in self._pairs.rest():
            for event in self.read(frame, stream):
                yield event

    async def accepted(self, connection: Connection, framing: Framing) -> EventStream:
        """Return the event stream of a response with an answer; raise for any other response."""
        status, headers = connection.status, connection.headers
        content_type = headers.get("content-type", "").lower()
        try:
            stream = EventStream(connection, _shape(content_type, framing))
            if status == _OK and "html" not in content_type:
                return stream
            body = await stream.body(ERROR_BODY_BYTES, ERROR_BODY_S)
        except OSError as error:
            if status == _OK:
                raise self.refusals.broken(
                    str(error), retryable=not isinstance(error, UnknownEncodingError)
                ) from error
            body = b""
        is_answer = status in _DONE and "event-stream" in content_type
        text = "" if is_answer else body.decode("utf-8", "replace")
        if status in _REDIRECTS:
            raise self.refusals.moved(status, headers)
        if status == _OK:
            raise self.refusals.no_stream(content_type, text)
        raise self.refusals.refused(status, headers, text)

    async def _first_frames(
        self, stream: EventStream, first_s: float, left_s: float
    ) -> list[bytes]:
        if self.reader.finished:
            return await self._frames(stream, first_s)
        try:
            return await self._frames(stream, first_s, left_s=max(left_s, 0.0))
        except TimeoutError as error:
            text = f"no answer began within {first_s:g} s"
            if self._first_event_s:
                raise self.refusals.late(text) from error
            raise self.refusals.silent(text) from error

    async def _frames(
        self, stream: EventStream, idle_s: float, *, left_s: float | None = None
    ) -> list[bytes]:
        """Return the data of the next events, or [] once the answer has ended.

        Once the model has finished, only token counts can be missing. A failure of the connection
        then ends the answer without an error.
        """
        finished = self.reader.finished
        try:
            limit_s = min(TAIL_S, idle_s) if finished else idle_s
            frames = await stream.read(limit_s, left_s=left_s)
        except TimeoutError as error:
            if finished:
                return []
            if left_s is not None:
                raise
            raise self.refusals.silent(f"nothing came for {idle_s:g} s") from error
        except OSError as error:
            if finished:
                return []
            raise self.refusals.broken(str(error)) from error
        if not frames and not (stream.complete or finished):
            raise self._broken_off(stream)
        return frames

    def _broken_off(self, stream: EventStream) -> ProviderError:
        """Return the error for a response body that ends too early.

        It tells apart an empty body, an HTML page, and an answer that broke off.
        """
        head = stream.head.decode("utf-8", "replace").strip()
        if not head:
            return self.refusals.broken("the server sent an empty answer")
        if head.startswith("<") and not self._heard:
            return self.refusals.no_stream("text/event-stream", head)
        return self.refusals.broken("the answer broke off before its end")

    def _all(self, frames: list[bytes], stream: EventStream) -> Iterator[StreamEvent]:
        for frame in frames:
            for whole in self._pairs.join(frame):
                yield from self.read(whole, stream)

    def read(self, frame: bytes, stream: EventStream) -> Iterable[StreamEvent]:
        """Yield the events in a frame, or nothing for a frame after the end of the answer."""
        over = self.reader.finished
        try:
            for event in self.reader.read(frame):
                self._heard = True
                if not over:
                    yield event
        except ErrorFrameError as error:
            # Not `from error`: that has the key of whoever echoes it.
            raise self.refusals.in_stream(error.error) from None
        except ValueError as error:
            if not self.reader.finished:
                raise self.refusals.broken(f"the answer cannot be read: {error}") from error
        if stream.is_whole and not (self._heard or self.reader.finished):
            raise self.refusals.no_stream("JSON", frame.decode("utf-8", "replace"))


async def _until_done(task: "asyncio.Task[Any]") -> AsyncGenerator[Heartbeat, None]:
    """Yield a heartbeat every half second until the task ends; leaving cancels the task."""
    try:
        while not (await asyncio.wait({task}, timeout=LIFE_S))[0]:
            yield Heartbeat()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


def _shape(content_type: str, framing: Framing) -> Shape:
    """Return how the response body is split, by its content type, else by the wire format."""
    if "event-stream" in content_type:
        return "events"
    if framing == "lines" or any(mark in content_type for mark in _LINES):
        return "lines"
    return "whole" if "json" in content_type else framing
