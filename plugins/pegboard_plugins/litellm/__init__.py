"""Models of all providers that litellm supports, as `litellm/NAME` or as litellm's NAME alone.

The import of litellm takes 3 s and 130 MB, so a thread imports it at the first request. Until
then, the plugin reads the models and their prices from litellm's price list.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegboard import hookimpl
from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError, ToolSchemaError
from pegboard.providers import (
    Key,
    Keys,
    ModelRequest,
    Provider,
    StreamEvent,
)
from pegboard.schema.config import Config, ProviderConfig
from pegboard.schema.model import Model

if TYPE_CHECKING:
    from pegboard.unstable import SentMedia
    from pegboard_plugins.litellm.catalog import Catalog

ID = "litellm"
HEADER_TIMEOUT_S = 120.0
"""How long a model may take to begin: litellm's own limit is ten minutes."""
RESOLVE_TIMEOUT_S = 60.0
_SHORTEST_SECRET = 8
"""A shorter key is a word such as `local`, for a server that looks at none."""
_AUTH = (401, 403)
_NOT_FOUND = 404
_REFUSING = (400, 422)
_TOO_LARGE = 413
_TOO_MANY = 429
_ADDRESSING = frozenset(
    {
        *("api_base", "base_url", "api_key", "custom_llm_provider", "headers", "extra_headers"),
        *("fallbacks", "context_window_fallback_dict", "model_list", "litellm_credential_name"),
        *("client", "shared_session", "ssl_verify"),
    }
)
"""Options of models and agents that would choose who gets the request and the key.

Only a provider's `baseURL` and `apiKey` do, of which is told where a project has set them.
"""


class LiteLLM:
    """The provider of all of litellm's models; `settings` is the user's `provider` table."""

    def __init__(self, settings: Mapping[str, ProviderConfig], keys: Keys) -> None:
        self._settings = settings
        self._keys = keys
        self._catalog: Catalog | None = None
        self._module: Any = None
        self._media: SentMedia | None = None

    @property
    def id(self) -> str:
        """The provider's id, as in `litellm/MODEL`."""
        return ID

    @property
    def name(self) -> str:
        """The name that the user sees."""
        return "litellm"

    @property
    def env(self) -> Sequence[str]:
        """An empty sequence, since each provider behind litellm has variables of its own."""
        return ()

    def models(self) -> Sequence[Model]:
        """Return no models: there are thousands, and the user's keys decide which of them work."""
        return ()

    def resolve(self, model_id: str) -> Model | None:
        """Return litellm's model with this name, or None for an unknown provider."""
        return self._known().find(model_id)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the model's answer; closing the iterator ends the request."""
        from pegboard.unstable import SentMedia
        from pegboard_plugins.litellm.events import ChunkReader
        from pegboard_plugins.litellm.medialimits import limits_for

        key = await self._key(request.model.id)  # before the import: a missing one is told at once
        media = self._media = self._media or SentMedia()
        request = await asyncio.to_thread(media.prepared, request, limits_for(request.model.id))
        building = asyncio.to_thread(self._arguments, request, key)
        module, arguments = await asyncio.gather(self._loaded(), building)
        errors = (module.exceptions.openai.OpenAIError, OSError, ValueError)
        reader = ChunkReader()
        answer: Any = None
        try:
            async with asyncio.timeout(HEADER_TIMEOUT_S):
                answer = await module.acompletion(**arguments)
            media.taken(request)
            chunks = aiter(answer)
            while (chunk := await _next(chunks, request.idle_timeout_s)) is not None:
                for event in reader.read(chunk):
                    yield event
        except errors as error:
            if answer is None or answer.received_finish_reason is None:
                from pegboard_plugins.litellm.connecting import reason_of

                failure = self._failure(error, await reason_of(error, os.environ), request, key)
                without = None if answer else media.without(request, failure)
                if without is None:
                    raise failure from None
                async for event in self.stream(without):
                    yield event
                return
            reader.finish(answer.received_finish_reason)  # all but the counts had come
        finally:
            if answer is not None:
                await answer.aclose()
        if answer.received_finish_reason is None and answer.intermittent_finish_reason is None:
            # litellm says "stop" in the name of a server that has only hung up.
            raise ProviderError(
                f"{ID}: the answer broke off before its end", provider_id=ID, retryable=True
            )
        for event in reader.end():
            yield event

    async def aclose(self) -> None:
        """Close litellm's connections."""
        if self._module is not None:
            from pegboard_plugins.litellm.sdk import close

            await close(self._module)

    def _known(self) -> "Catalog":
        if self._catalog is None:
            from pegboard_plugins.litellm.catalog import Catalog

            self._catalog = Catalog()
        return self._catalog

    async def _loaded(self) -> Any:  # noqa: ANN401 - a module without useful types
        if self._module is None:
            from pegboard_plugins.litellm.sdk import load

            try:
                self._module = await load()
            except ImportError as error:
                raise ProviderError(
                    f"{ID} cannot be imported: {error}; install it with `pip install litellm`",
                    provider_id=ID,
                ) from error
        return self._module

    async def _key(self, model_id: str) -> Key | None:
        """Return the key for the provider behind a model, or None if litellm needs no key here.

        :raises ProviderAuthError: when the provider needs a key and there is none.
        """
        from pegboard_plugins.litellm.variables import KEY_VARIABLES, OTHER_VARIABLES

        behind = await asyncio.to_thread(self._known().provider_of, model_id)
        names = KEY_VARIABLES.get(behind, ())
        if key := await self._keys.find(behind, names) or await self._keys.find(ID):
            return key
        others = (os.environ.get(name) for name in OTHER_VARIABLES.get(behind, ()))
        if not names or any(others) or self._url(behind):
            return None
        from pegboard.http import required_key

        return await required_key(self._keys, behind, names)

    def _url(self, behind: str) -> object:
        said = (self._settings.get(name, ProviderConfig()).options for name in (behind, ID))
        return next((url for options in said if (url := options.get("baseURL"))), None)

    def _arguments(self, request: ModelRequest, key: Key | None) -> dict[str, Any]:
        from pegboard_plugins.litellm.messages import messages_of, tools_of

        sampled = request.model.capabilities.temperature
        chosen = {
            "tools": tools_of(request),
            "temperature": request.temperature if sampled else None,
            "top_p": request.top_p if sampled else None,
            "max_tokens": request.max_output_tokens,
            "response_format": _response_format(request),
            "extra_headers": dict(request.headers),
            "api_key": key.value if key else None,
            "api_base": self._url(self._known().provider_of(request.model.id)),
            **{name: value for name, value in request.options.items() if name not in _ADDRESSING},
        }
        return {
            "model": request.model.api.id,
            "messages": messages_of(request),
            "stream": True,
            "stream_options": {"include_usage": True},
            "num_retries": 0,
            "max_retries": 0,
            # litellm looks for MCP servers in the tools of each request, and fails without `mcp`.
            "_skip_mcp_handler": True,
            "timeout": request.idle_timeout_s,
            **{name: value for name, value in chosen.items() if value not in (None, [], {})},
        }

    def _failure(
        self, error: Exception, reason: str, request: ModelRequest, key: Key | None
    ) -> ProviderError:
        """Translate litellm's error, without the key, which some servers repeat in messages."""
        # Where something has failed.
        from pegboard.http import asked_wait_s, is_overflow, refused_keyword, refused_tools
        from pegboard.unstable import key_advice, says, without_values

        model_id = request.model.id
        secrets = (key.value,) if key and len(key.value) >= _SHORTEST_SECRET else ()
        status = getattr(error, "status_code", None)
        headers = _headers(error)
        facts: dict[str, Any] = {
            "provider_id": ID,
            "status": status,
            "wait_s": asked_wait_s(headers, status, str(error)),
            "headers": {name: without_values(value, secrets) for name, value in headers.items()},
        }
        if isinstance(error, TimeoutError):
            return ProviderError(f"{model_id}: no answer in time", retryable=True, **facts)
        said = without_values(str(error), secrets)
        text = " ".join(f"{said.removeprefix('litellm.')}{reason}".split())
        kind = type(error).__name__
        if kind == "ContextWindowExceededError" or is_overflow(text, status):
            return ContextOverflowError(f"{model_id}: the request is too long: {text}", **facts)
        if status in _AUTH:
            hint = key_advice(self._known().provider_of(model_id), refused=key)
            return ProviderAuthError(f"{model_id}: {text}. {hint}", **facts)
        if status in _REFUSING and (tools := refused_tools(text, request.tools)):
            keyword = refused_keyword(text)
            return ToolSchemaError(f"{model_id}: {text}", tools=tools, keyword=keyword, **facts)
        nearest = self._known().nearest(model_id) if status == _NOT_FOUND else []
        if nearest and model_id not in nearest:
            text = f"{text} Did you mean {', '.join(nearest)}?"
        passing: bool | None = (
            True if isinstance(error, OSError) or says(text, "throttled") else None
        )  # None: the status tells
        if kind == "ContentPolicyViolationError" or says(text, "policy") or says(text, "no-money"):
            passing = False
        return ProviderError(f"{model_id}: {text}", retryable=passing, **facts)


def _response_format(request: ModelRequest) -> dict[str, Any] | None:
    """Return `response_format`; None without a schema or with tools, as few servers take both."""
    if request.output_schema is None or request.tools:
        return None
    form = {"name": "answer", "schema": request.output_schema}
    return {"type": "json_schema", "json_schema": form}


def _headers(error: Exception) -> dict[str, str]:
    """Return the headers of a failed response, such as `retry-after`, with lower-case names."""
    response = getattr(error, "response", None)
    found = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None)
    return {str(name).lower(): str(value) for name, value in dict(found or {}).items()}


async def _next(chunks: Any, idle_s: float) -> Any:  # noqa: ANN401 - litellm's objects
    """Return the next chunk, or None at the end."""
    async with asyncio.timeout(idle_s):
        return await anext(chunks, None)


@hookimpl
async def register_providers(config: Config, keys: Keys) -> tuple[Provider, ...]:
    """Return the provider `litellm`."""
    return (LiteLLM(config.provider, keys),)


@hookimpl(trylast=True, timeout_s=RESOLVE_TIMEOUT_S)
async def model_resolve(name: str) -> Model | None:
    """Return the model that litellm knows by this name, which has no prefix `litellm/`."""
    from pegboard_plugins.litellm.catalog import Catalog

    return await asyncio.to_thread(Catalog().find, name)
