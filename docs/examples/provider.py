"""A provider: models behind an HTTP API of one's own, which answers in lines of JSON.

    {"text": "I look."}
    {"call": {"id": "c1", "name": "read", "input": {"filePath": "a.txt"}}}
    {"end": {"input": 120, "output": 9}}

`end` counts the tokens. The address is `provider.lines.options.baseURL`, the key is in the
variable LINES_API_KEY.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard import hookimpl
from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.providers import (
    ModelRequest,
    Provider,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputStart,
    Usage,
)
from pegboard.schema.config import Config, ProviderConfig
from pegboard.schema.model import Model, ModelApi

if TYPE_CHECKING:
    import httpx

ID, KEY = "lines", "LINES_API_KEY"
REFUSED, TOO_LONG, TOO_MANY, BROKEN = (401, 403), 413, 429, 500


class Called(msgspec.Struct):
    """A call of a tool; its arguments stay the JSON that they are."""

    id: str
    name: str
    input: msgspec.Raw


class Line(msgspec.Struct):
    """One line of an answer, which has one of the three."""

    text: str = ""
    call: Called | None = None
    end: Usage | None = None


class Lines:
    """Asks the server at `url`; every name of a model is passed on."""

    id, name, env = ID, "Lines", (KEY,)

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = f"{url.rstrip('/')}/answer", key

    def models(self) -> Sequence[Model]:
        """None is known without asking the server."""
        return ()

    def resolve(self, model_id: str) -> Model | None:
        """A model of this name, of which nothing else is known."""
        return Model(id=model_id, provider_id=ID, name=model_id, api=ModelApi(id=model_id))

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The answer as it comes; an answer without its last line has failed."""
        import httpx  # 0.1 s that only a request pays

        if not self._key:
            raise ProviderAuthError(f"{KEY} is not set", provider_id=ID)
        headers = {**request.headers, "Authorization": f"Bearer {self._key}"}
        try:
            async with (
                httpx.AsyncClient(timeout=request.idle_timeout_s, trust_env=False) as client,
                client.stream("POST", self._url, json=_body(request), headers=headers) as response,
            ):
                _check(response)
                async for event in _events(response.aiter_lines()):
                    yield event
        except (httpx.HTTPError, msgspec.DecodeError) as error:
            text = f"{self._url}: {str(error) or type(error).__name__}"
            raise ProviderError(text, provider_id=ID, retryable=True) from error

    async def aclose(self) -> None:
        """Nothing is open between requests."""


def _check(response: "httpx.Response") -> None:
    status, text = response.status_code, f"the server answers with status {response.status_code}"
    if status in REFUSED:
        raise ProviderAuthError(f"{text}: {KEY} is refused", provider_id=ID, status=status)
    if status == TOO_LONG:
        raise ContextOverflowError(text, provider_id=ID, status=status)
    if response.is_error:
        raise ProviderError(
            text,
            provider_id=ID,
            status=status,
            retryable=status == TOO_MANY or status >= BROKEN,
            headers=dict(response.headers),  # they may say when to try again
        )


def _body(request: ModelRequest) -> dict[str, Any]:
    """What the server is asked with: texts, calls and results, each with its kind."""
    return {
        **request.options,
        "model": request.model.api.id,
        "temperature": request.temperature,
        "max_tokens": request.max_output_tokens,
        "system": "\n\n".join(request.system),
        "messages": [
            {"role": message.role, "content": [_content(each) for each in message.content]}
            for message in request.messages
        ],
        "tools": [msgspec.to_builtins(tool) for tool in request.tools],
    }


def _content(content: msgspec.Struct) -> dict[str, Any]:
    return {"kind": type(content).__name__.lower(), **msgspec.to_builtins(content)}


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[StreamEvent]:
    has_text = has_calls = False
    async for written in lines:
        line = msgspec.json.decode(written, type=Line)
        if line.text:
            if not has_text:
                yield TextStart("text")
            has_text = True
            yield TextDelta("text", line.text)
        if line.call is not None:
            has_calls = True
            yield ToolInputStart(line.call.id, line.call.name)
            yield ToolCall(line.call.id, line.call.name, bytes(line.call.input).decode())
        if line.end is not None:
            if has_text:
                yield TextEnd("text")
            yield StreamFinish("tool-calls" if has_calls else "stop", line.end)


@hookimpl
async def register_providers(config: Config, env: Mapping[str, str]) -> Sequence[Provider]:
    """The provider, if the configuration has an address for it."""
    options = config.provider.get(ID, ProviderConfig()).options
    url = options.get("baseURL")
    return (Lines(url, str(options.get("apiKey") or env.get(KEY, ""))),) if url else ()
