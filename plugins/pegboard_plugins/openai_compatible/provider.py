"""A provider that speaks OpenAI's chat completions, whoever serves them."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from pegboard.errors import ProviderAuthError, ProviderError
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.model import Model
from pegboard_plugins.openai_compatible import failures
from pegboard_plugins.openai_compatible.known import thinks

if TYPE_CHECKING:
    from pegboard_plugins.openai_compatible.answer import AnswerReader, Chunk
    from pegboard_plugins.openai_compatible.client import Client
    from pegboard_plugins.openai_compatible.connection import Connection
    from pegboard_plugins.openai_compatible.request import Dialect
    from pegboard_plugins.openai_compatible.stream import EventStream

TAIL_S = 5.0
"""How long the usage may take to come once the model has said that it has ended."""
ERROR_BODY_BYTES = 1 << 16
ERROR_BODY_S = 10.0
_SHORTEST_SECRET = 8
"""A shorter key is none, but a word such as `none` or `local` for a server that looks at no key."""
_OK = 200
_REDIRECTS = range(300, 400)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A server and how to speak to it; a struct, as it stands on the start path.

    `env` are the variables that may hold the key; without `key` and `env` none is needed.
    `strict` is whether `models` are all that it serves, `timeout_s` how long it may take to
    begin an answer. `options` go into every request.
    """

    id: str
    name: str
    url: str
    key: str = ""
    env: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    options: Mapping[str, Any] = {}
    models: Mapping[str, Mapping[str, Any]] = {}
    strict: bool = False
    sees: bool = False
    limit_field: str = "max_tokens"
    usage_option: bool = True
    cache_key: bool = False
    short_ids: bool = False
    timeout_s: float = 60.0


class OpenAICompatible:
    """The models of one endpoint. `environ` is where keys and proxies are looked up."""

    def __init__(self, endpoint: Endpoint, environ: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._environ = environ
        self._client: Client | None = None

    @property
    def id(self) -> str:
        """The name in `provider/model`."""
        return self._endpoint.id

    @property
    def name(self) -> str:
        """The name for people."""
        return self._endpoint.name

    @property
    def env(self) -> Sequence[str]:
        """The variables that may hold the key."""
        return self._endpoint.env

    def models(self) -> Sequence[Model]:
        """The models that are declared or known; none while the key is missing."""
        if self._endpoint.env and not self._key():
            return ()
        return tuple(self._model(model_id) for model_id in self._endpoint.models)

    def resolve(self, model_id: str) -> Model | None:
        """The model of this id; None if the configuration lists others only."""
        endpoint = self._endpoint
        if not model_id or (endpoint.strict and model_id not in endpoint.models):
            return None
        return self._model(model_id)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The answer, event by event; closing the iterator closes the socket."""
        from pegboard_plugins.openai_compatible.answer import AnswerReader  # after the request

        connection = await self._post(request)
        over = False
        try:
            stream = await self._accepted(connection)
            reader = AnswerReader()
            while payloads := await self._payloads(stream, reader, request.idle_timeout_s):
                for payload in payloads:
                    for event in reader.read(self._chunk(payload, stream, reader)):
                        yield event
            over = True
            for event in reader.end():
                yield event
        finally:
            self._leave(connection, over=over)

    async def aclose(self) -> None:
        """Close the sockets that wait for a next request."""
        if self._client:
            await self._client.aclose()

    async def _post(self, request: ModelRequest) -> "Connection":
        """The connection, with the head of the answer there."""
        from pegboard_plugins.openai_compatible.client import Client  # brings the HTTP parser
        from pegboard_plugins.openai_compatible.request import encode_request

        headers = self._headers(request)
        options = {**self._endpoint.options, **request.options}
        body = encode_request(replace(request, options=options), self._dialect(request.model))
        self._client = self._client or Client(self._environ)
        timeout_s = self._endpoint.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await self._client.post(self._url, headers, body)
        except TimeoutError as error:
            raise failures.broken(self.id, f"no answer began within {timeout_s:g} s") from error
        except OSError as error:
            host = urlsplit(self._url).netloc.rpartition("@")[2]
            raise failures.unreachable(self.id, host, error) from error
        except ValueError as error:
            raise ProviderError(f"{self.id}: {error}", provider_id=self.id) from error

    async def _accepted(self, connection: "Connection") -> "EventStream":
        """The stream of an answer that is one; what else the server says is an error."""
        from pegboard_plugins.openai_compatible.stream import EventStream

        status, headers = connection.status, connection.headers
        content_type = headers.get("content-type", "").lower()
        try:
            stream = EventStream(connection, whole="json" in content_type)
            if status == _OK and "html" not in content_type:
                return stream
            body = await stream.body(ERROR_BODY_BYTES, ERROR_BODY_S)
        except OSError as error:
            if status == _OK:
                raise failures.broken(self.id, str(error)) from error
            body = b""
        text = self._without_key(body.decode("utf-8", "replace"))
        if status in _REDIRECTS:
            raise failures.moved(self.id, status, headers)
        if status == _OK:
            raise failures.no_stream(self.id, content_type, text)
        raise failures.refused(self.id, status, headers, text, credential=self._credential())

    async def _payloads(
        self, stream: "EventStream", reader: "AnswerReader", idle_s: float
    ) -> list[bytes]:
        """The data of the events that have come; none when the answer is over.

        Once the model has said that it has ended, only its usage is missing, which is no
        reason to fail.
        """
        try:
            payloads = await stream.read(TAIL_S if reader.finished else idle_s)
        except TimeoutError as error:
            if reader.finished:
                return []
            raise failures.broken(self.id, f"nothing came for {idle_s:g} s") from error
        except OSError as error:
            if reader.finished:
                return []
            raise failures.broken(self.id, str(error)) from error
        if not payloads and not (stream.complete or reader.finished):
            raise failures.broken(self.id, "the answer broke off before its end")
        return payloads

    def _chunk(self, payload: bytes, stream: "EventStream", reader: "AnswerReader") -> "Chunk":
        from pegboard_plugins.openai_compatible.answer import Chunk, chunk_from

        try:
            chunk = chunk_from(payload)
        except ValueError as error:
            if reader.is_whole:
                return Chunk()
            raise failures.broken(self.id, f"the answer cannot be read: {error}") from error
        if chunk.error and not reader.is_whole:
            raise failures.in_stream(self.id, chunk.error)
        if stream.is_whole and not chunk.choices:
            text = payload.decode("utf-8", "replace")
            raise failures.no_stream(self.id, "JSON", text)
        return chunk

    def _leave(self, connection: "Connection", *, over: bool) -> None:
        if over and self._client:
            self._client.release(self._url, connection)
        else:
            connection.abort()

    @property
    def _url(self) -> str:
        base = urlsplit(self._endpoint.url)  # Azure's has a query
        return base._replace(path=f"{base.path.rstrip('/')}/chat/completions").geturl()

    def _without_key(self, text: str) -> str:
        key = self._key()
        return text.replace(key, "***") if len(key) >= _SHORTEST_SECRET else text

    def _key(self) -> str:
        found = (self._environ[name] for name in self._endpoint.env if self._environ.get(name))
        return self._endpoint.key or next(found, "")

    def _credential(self) -> str:
        """Where a key belongs, as a sentence."""
        place = f"`provider.{self.id}.options.apiKey` in your configuration"
        names = " or ".join(self._endpoint.env)
        return f"Set {names}, or {place}" if names else f"Set {place}"

    def _headers(self, request: ModelRequest) -> dict[str, str]:
        key = self._key()
        if self._endpoint.env and not key:
            raise ProviderAuthError(
                f"{self.name} needs a key. {self._credential()}", provider_id=self.id
            )
        headers = {
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "pegboard",
            **({"authorization": f"Bearer {key}"} if key else {}),
        }
        for source in (self._endpoint.headers, request.model.headers, request.headers):
            headers.update({name.lower(): value for name, value in source.items()})
        return headers

    def _model(self, model_id: str) -> Model:
        from pegboard_plugins.openai_compatible.models import model_from  # 2 ms of structs

        endpoint = self._endpoint
        facts = endpoint.models.get(model_id)
        if facts is None:
            reasons = thinks(endpoint.id, model_id)
            facts = {"reasoning": True, "temperature": False} if reasons else {}
        return model_from(endpoint.id, model_id, facts, url=endpoint.url, sees=endpoint.sees)

    def _dialect(self, model: Model) -> "Dialect":
        from pegboard_plugins.openai_compatible.request import Dialect

        inputs = model.capabilities.input
        media = ("image", "audio", "pdf", "video")
        interleaved = model.capabilities.interleaved
        field_name = interleaved.get("field", "") if isinstance(interleaved, dict) else ""
        endpoint = self._endpoint
        return Dialect(
            inputs=frozenset(kind for kind in media if getattr(inputs, kind)),
            reasoning_field=field_name,
            short_ids=endpoint.short_ids,
            limit_field=endpoint.limit_field,
            usage_option=endpoint.usage_option,
            cache_key=endpoint.cache_key,
        )
