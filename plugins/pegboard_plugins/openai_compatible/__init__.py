"""Models behind OpenAI's chat completions: OpenAI's own, and the many servers that speak alike."""

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from pegboard import hookimpl
from pegboard.providers import Endpoint, HttpProvider, Keys, Provider, WireFormat, endpoints
from pegboard.schema.config import Config
from pegboard.schema.model import Model
from pegboard_plugins.openai_compatible.known import KNOWN, QUIRKS, Quirks, ollama_url

_NPM = (
    "@ai-sdk/openai-compatible",
    "@ai-sdk/openai",
    "@openrouter/ai-sdk-provider",
)
"""The clients that files made for OpenCode may name and that this plugin stands in for."""
_CACHE_KEY = "setCacheKey"
_WIRE = "wire"
_OFFICIAL = "https://api.openai.com/"


@hookimpl(tryfirst=True)
async def register_providers(
    config: Config, env: Mapping[str, str], keys: Keys
) -> tuple[Provider, ...]:
    """A provider for each known server, and for each with a base URL in the configuration.

    Asked first, so that a plugin that knows a server of this name by an API of its own replaces it.
    """
    environ = (
        {**env, "OLLAMA_HOST": ollama_url(env["OLLAMA_HOST"])} if env.get("OLLAMA_HOST") else env
    )
    found = endpoints(config, environ, known=KNOWN, npm=_NPM)
    return tuple(
        provider(endpoint, QUIRKS.get(endpoint.id, Quirks()), environ=env, keys=keys)
        for endpoint in found
    )


def provider(
    endpoint: Endpoint, quirks: Quirks, *, environ: Mapping[str, str], keys: Keys
) -> HttpProvider:
    """The provider of an endpoint that has these quirks."""
    options = dict(endpoint.options)
    quirks = replace(quirks, cache_key=bool(options.pop(_CACHE_KEY, quirks.cache_key)))
    chosen = str(options.pop(_WIRE, ""))
    bare = replace(endpoint, options=options)

    def wire(model: Model) -> WireFormat:
        return _responses() if is_by_responses(bare, model, chosen) else _chat(quirks)

    return HttpProvider(bare, wire, environ=environ, keys=keys)


def is_by_responses(endpoint: Endpoint, model: Model, chosen: str) -> bool:
    """Whether a model is asked through the Responses API: as the user has chosen, or by its facts.

    A server that stands for OpenAI's is taken to know chat completions only.
    """
    if chosen:
        return chosen == "responses"
    if not endpoint.url.startswith(_OFFICIAL):
        return False
    return model.wire in (None, "responses")


def _chat(quirks: Quirks) -> WireFormat:
    from pegboard_plugins.openai_compatible.answer import ChatReader  # the first request's
    from pegboard_plugins.openai_compatible.request import encode

    return WireFormat(encode=partial(encode, quirks=quirks), reader=lambda _: ChatReader())


def _responses() -> WireFormat:
    from pegboard_plugins.openai_compatible.responses import encode  # the first request's
    from pegboard_plugins.openai_compatible.responses_answer import ResponseReader

    return WireFormat(encode=encode, reader=lambda _: ResponseReader())
