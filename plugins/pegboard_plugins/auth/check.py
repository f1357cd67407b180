"""Whether a key opens a provider: its list of models is asked for, which costs nothing."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pegboard.errors import ProviderAuthError, ProviderError
from pegboard.http import is_loopback
from pegboard.schema.config import Config
from pegboard.schema.model import Model

if TYPE_CHECKING:
    import httpx

    from pegboard.providers import Provider

TIMEOUT_S = 15.0
_OK = 200
_REFUSED = (401, 403)
_ANY = "any"
"""The name of a model, to ask a provider for its address."""
_ANTHROPIC_VERSION = "2023-06-01"


async def checked(provider: "Provider | None", config: Config, key: str) -> str:
    """Which call was made, and what came back; no word of it is the key's.

    :raises ProviderAuthError: when the key is refused.
    :raises ProviderError: when nobody answers.
    """
    model = _some_model(provider, config) if provider else None
    if provider is None or model is None or not model.api.url:
        return "untested: no provider here says where its list of models is"
    url, head = _models_url(model.api.url), _headers(model, key)
    import httpx  # 0.1 s that only a check pays

    # Of the environment are proxies and certificates; a key for this machine goes to no proxy.
    by_proxy = not is_loopback(httpx.URL(url).host)
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=by_proxy) as client:
            answer = await client.get(url, headers=head)
            is_open = answer.status_code == _OK and (await client.get(url)).status_code == _OK
    except httpx.HTTPError as error:
        text = f"GET {_shown(url)}: {str(error) or type(error).__name__}; the key was not kept"
        raise ProviderError(text, provider_id=provider.id) from error
    call = f"GET {_shown(url)} answered {answer.status_code}"
    if answer.status_code in _REFUSED:
        text = f"{call}: the key is refused, and was not kept"
        raise ProviderAuthError(text, provider_id=provider.id, status=answer.status_code)
    if is_open:
        return f"untested: {call} without a key too"
    return f"{call}, {_count(answer)}" if answer.status_code == _OK else f"untested: {call}"


def _some_model(provider: "Provider", config: Config) -> Model | None:
    said = config.provider.get(provider.id)
    names = [*(said.models if said else ()), _ANY]
    return next((model for name in names if (model := provider.resolve(name))), None)


def _models_url(url: str) -> str:
    base, question, query = url.partition("?")
    return f"{base.rstrip('/')}/models{question}{query}"


def _shown(url: str) -> str:
    """The address without a password or a query, in which keys may stand."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _headers(model: Model, key: str) -> Mapping[str, str]:
    """The headers in which servers of this kind look for a key."""
    if "anthropic" in model.api.npm:
        return {"x-api-key": key, "anthropic-version": _ANTHROPIC_VERSION}
    if "google" in model.api.npm:
        return {"x-goog-api-key": key}
    return {"authorization": f"Bearer {key}"}


def _count(answer: "httpx.Response") -> str:
    try:
        told: Any = answer.json()
    except ValueError:
        return "which is no list"
    listed = told.get("data", told.get("models")) if isinstance(told, dict) else told
    return f"{len(listed)} models" if isinstance(listed, list) else "which is no list"
