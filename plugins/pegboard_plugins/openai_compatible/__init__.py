"""Models through OpenAI's chat completions API, of OpenAI and of compatible servers."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pegboard import hookimpl
from pegboard.http import Endpoint, HttpProvider, KeyCheck, MediaLimits, WireFormat, endpoints
from pegboard.providers import Keys, Provider
from pegboard.schema.config import Config
from pegboard.schema.model import Model

if TYPE_CHECKING:
    from pegboard_plugins.openai_compatible.quirks import Quirks

_COMPATIBLE = "@ai-sdk/openai-compatible"
_NPM = (
    _COMPATIBLE,
    "@ai-sdk/openai",
    "@openrouter/ai-sdk-provider",
)
"""The clients that files made for OpenCode may name and that this plugin stands in for."""
_CACHE_KEY = "setCacheKey"
_WIRE = "wire"
_CHAIN = "chainResponses"
_OFFICIAL = "https://api.openai.com/"


def _fitting(content: bytes, limits: MediaLimits) -> bytes | str:
    from pegboard_plugins.shared import pictures  # few pictures are too large

    return pictures.fitting_picture(content, limits)


_JPEG_PNG = ("image/jpeg", "image/png")
_MEDIA: Mapping[str, MediaLimits] = {
    "openai": MediaLimits(
        image_bytes=20 << 20,
        images=(*_JPEG_PNG, "image/gif", "image/webp"),
        most=500,
        total_bytes=50 << 20,
        fit=_fitting,
    ),
    "groq": MediaLimits(image_bytes=3_500_000, most=5, total_bytes=3_500_000, fit=_fitting),
    "mistral": MediaLimits(image_bytes=10 << 20, most=8, fit=_fitting),
    "xai": MediaLimits(image_bytes=10 << 20, images=_JPEG_PNG, fit=_fitting),
}
"""By server what its pages about pictures say; a request to Groq with base64 has 4 MB at most."""


_CHECKS = {"openrouter": KeyCheck(path="key")}
"""Where the list of models is open to all."""


def _hosted(server: str, name: str, url: str, variable: str) -> Endpoint:
    return Endpoint(
        id=server,
        name=name,
        url=url,
        env=(variable,),
        key_check=_CHECKS.get(server, KeyCheck()),
        npm=_COMPATIBLE,
    )


def _local(server: str, name: str, port: int, start: str, url_env: str = "") -> Endpoint:
    return Endpoint(
        id=server,
        name=name,
        url=f"http://127.0.0.1:{port}/v1",
        url_env=url_env,
        start=start,
        key_check=KeyCheck(),
        npm=_COMPATIBLE,
    )


_SERVERS = (
    Endpoint(
        id="openai",
        name="OpenAI",
        url="https://api.openai.com/v1",
        env=("OPENAI_API_KEY",),
        key_check=KeyCheck(),
        url_env="OPENAI_BASE_URL",
        npm="@ai-sdk/openai",
    ),
    _hosted("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    _hosted("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    _hosted("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    _hosted("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    _hosted("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY"),
    _hosted("together", "Together AI", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    _hosted(
        "fireworks", "Fireworks AI", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"
    ),
    _hosted("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    _local("ollama", "Ollama", 11434, "ollama serve", "OLLAMA_HOST"),
    _local("lmstudio", "LM Studio", 1234, "lms server start"),
    _local("vllm", "vLLM", 8000, "vllm serve MODEL"),
    _local("llamacpp", "llama.cpp", 8080, "llama-server -m MODEL.gguf --jinja"),
)
KNOWN: Mapping[str, Endpoint] = {endpoint.id: endpoint for endpoint in _SERVERS}


def ollama_url(host: str) -> str:
    """Return the URL in `OLLAMA_HOST`, which may lack a scheme or port, or be 0.0.0.0."""
    scheme, _, rest = host.rpartition("://")
    rest = rest.rstrip("/").replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - replaced, not bound
    if ":" not in rest:
        rest += ":443" if scheme == "https" else ":11434"
    return f"{scheme or 'http'}://{rest}/v1"


@hookimpl(tryfirst=True)
async def register_providers(
    config: Config, env: Mapping[str, str], keys: Keys
) -> tuple[Provider, ...]:
    """Register a provider for each known server, and for each with a base URL in the configuration.

    The plugin runs first, so that a plugin with its own API for a server's name replaces the
    provider.
    """
    environ = (
        {**env, "OLLAMA_HOST": ollama_url(env["OLLAMA_HOST"])} if env.get("OLLAMA_HOST") else env
    )
    found = endpoints(config, environ, known=KNOWN, npm=_NPM)
    return tuple(provider(endpoint, None, environ=env, keys=keys) for endpoint in found)


def provider(
    endpoint: Endpoint, quirks: "Quirks | None", *, environ: Mapping[str, str], keys: Keys
) -> HttpProvider:
    """Return the provider of an endpoint; without `quirks`, the endpoint's name decides them."""
    options = dict(endpoint.options)
    cache_key = options.pop(_CACHE_KEY, None)
    chosen = str(options.pop(_WIRE, ""))
    chained = bool(options.pop(_CHAIN, False))
    bare = replace(endpoint, options=options)

    def wire(model: Model) -> WireFormat:
        by_responses = is_by_responses(bare, model, chosen)
        found = _responses() if by_responses else _chat(bare.id, quirks, cache_key)
        return replace(found, media=_MEDIA.get(bare.id, found.media))

    if not chained:
        return HttpProvider(bare, wire, environ=environ, keys=keys)
    from pegboard_plugins.openai_compatible.chain import ChainedProvider  # few have it

    return ChainedProvider(bare, wire, environ=environ, keys=keys)


def is_by_responses(endpoint: Endpoint, model: Model, chosen: str) -> bool:
    """Return whether the Responses API serves a model.

    The user's choice decides, or else the facts about the model. A server in place of OpenAI's is
    assumed to support only chat completions.
    """
    if chosen:
        return chosen == "responses"
    if not endpoint.url.startswith(_OFFICIAL):
        return False
    return model.wire in (None, "responses")


def _chat(server: str, quirks: "Quirks | None", cache_key: object) -> WireFormat:
    from pegboard_plugins.openai_compatible.answer import ChatReader  # the first request's
    from pegboard_plugins.openai_compatible.quirks import QUIRKS, Quirks
    from pegboard_plugins.openai_compatible.request import encode

    quirks = quirks or QUIRKS.get(server, Quirks())
    if cache_key is not None:
        quirks = replace(quirks, cache_key=bool(cache_key))
    wire = WireFormat(
        encode=partial(encode, quirks=quirks), reader=lambda request: ChatReader(request.tools)
    )
    if not quirks.silent_window:
        return wire
    from pegboard_plugins.openai_compatible.ollama import check_window

    return replace(wire, before=check_window)


def _responses() -> WireFormat:
    from pegboard_plugins.openai_compatible.responses import encode  # the first request's
    from pegboard_plugins.openai_compatible.responses_answer import ResponseReader

    return WireFormat(encode=encode, reader=lambda _: ResponseReader())
