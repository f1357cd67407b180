"""The test of an API key, by the request that the provider's endpoint declares for tests."""

from typing import TYPE_CHECKING, Any

from pegboard.errors import ProviderAuthError, ProviderError
from pegboard.http import Endpoint, is_loopback

if TYPE_CHECKING:
    import httpx

    from pegboard.providers import Provider

TIMEOUT_S = 15.0
_OK = 200
_REFUSED = (401, 403)


async def try_key(provider: "Provider | None", key: str) -> str:
    """Test the key; return the request and its result, without any part of the key.

    :raises ProviderAuthError: when the key is refused.
    :raises ProviderError: when the server cannot be reached or does not answer.
    """
    endpoint = getattr(provider, "endpoint", None)
    if not (isinstance(endpoint, Endpoint) and endpoint.url and (check := endpoint.key_check)):
        return "not verified: no provider here says how its key is checked"
    url = endpoint.at(check.path)
    plain = {**endpoint.headers, **check.headers}
    head = {**plain, check.header: f"{check.prefix}{key}"}
    import httpx  # 0.1 s that only a check pays

    # Of the environment are proxies and certificates; a key for this machine goes to no proxy.
    by_proxy = not is_loopback(httpx.URL(url).host)
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=by_proxy) as client:
            answer = await client.get(url, headers=head)
            is_open = (
                answer.status_code == _OK
                and (await client.get(url, headers=plain)).status_code == _OK
            )
    except httpx.HTTPError as error:
        why = f"GET {_bare_address(url)}: {str(error) or type(error).__name__}"
        text = f"{why}; the key was not verified or saved (--no-check saves it anyway)"
        raise ProviderError(text, provider_id=endpoint.id) from error
    call = f"GET {_bare_address(url)} answered {answer.status_code}"
    if answer.status_code in _REFUSED:
        text = f"{call}: the key was rejected, and was not saved"
        raise ProviderAuthError(text, provider_id=endpoint.id, status=answer.status_code)
    if is_open:
        return "not verified: the server accepts requests without a key"
    return f"{call}, {_count(answer)}" if answer.status_code == _OK else f"not verified: {call}"


def _bare_address(url: str) -> str:
    """Return the URL without a password or query, which may contain keys."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _count(answer: "httpx.Response") -> str:
    try:
        told: Any = answer.json()
    except ValueError:
        return "which is not a list"
    listed = told.get("data", told.get("models")) if isinstance(told, dict) else told
    return f"{len(listed)} models" if isinstance(listed, list) else "which is not a list"
