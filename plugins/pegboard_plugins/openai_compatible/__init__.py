"""Models behind OpenAI's chat completions: OpenAI's own, and the many servers that speak alike."""

from collections.abc import Mapping
from typing import Any

from pegboard import hookimpl
from pegboard.providers import Provider
from pegboard.schema.config import Config, ProviderConfig
from pegboard_plugins.openai_compatible.known import KNOWN, Known, known_models, ollama_url
from pegboard_plugins.openai_compatible.provider import Endpoint, OpenAICompatible

_NPM = (
    None,
    "@ai-sdk/openai-compatible",
    "@ai-sdk/openai",
    "@openrouter/ai-sdk-provider",
)
"""The clients that files made for OpenCode may name and that this plugin stands in for."""
_OWN_OPTIONS = ("baseURL", "apiKey", "headers", "timeout_s", "timeout", "setCacheKey")


@hookimpl
async def register_providers(config: Config, env: Mapping[str, str]) -> tuple[Provider, ...]:
    """A provider for each known server, and for each with a base URL in the configuration."""
    return tuple(OpenAICompatible(endpoint, env) for endpoint in endpoints(config, env))


def endpoints(config: Config, environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The servers that are known or configured, the configuration over what is known."""
    names = dict.fromkeys((*KNOWN, *config.provider))
    found = (
        _endpoint(name, config.provider.get(name, ProviderConfig()), environ) for name in names
    )
    return tuple(endpoint for endpoint in found if endpoint)


def _endpoint(name: str, settings: ProviderConfig, environ: Mapping[str, str]) -> Endpoint | None:
    known = KNOWN.get(name)
    options = settings.options
    url = options.get("baseURL") or _env_url(name, known, environ) or settings.api
    if known:
        url = url or known.url
    elif settings.npm not in _NPM:
        return None
    if not isinstance(url, str) or not url:
        return None
    known = known or Known(name=name, url=url)
    return Endpoint(
        id=name,
        name=settings.name or known.name,
        url=url.rstrip("/"),
        key=str(options.get("apiKey") or ""),
        env=settings.env or known.env,
        headers={str(key): str(value) for key, value in options.get("headers", {}).items()},
        options=_request_options(options),
        models={**known_models(name), **settings.models},
        strict=name not in KNOWN and bool(settings.models),
        sees=known.sees,
        limit_field=known.limit_field,
        usage_option=known.usage_option,
        cache_key=bool(options.get("setCacheKey", known.cache_key)),
        short_ids=known.short_ids,
        timeout_s=float(options.get("timeout_s") or known.timeout_s),
    )


def _env_url(name: str, known: Known | None, environ: Mapping[str, str]) -> str | None:
    value = environ.get(known.url_env) if known and known.url_env else None
    return ollama_url(value) if value and name == "ollama" else value


def _request_options(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in _OWN_OPTIONS}
