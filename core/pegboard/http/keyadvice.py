"""The API key of a provider that requires a key, and advice on how to set the key."""

from collections.abc import Sequence

from pegboard.errors import ProviderAuthError
from pegboard.providers.keylookup import Key, Keys


async def required_key(
    keys: Keys, provider_id: str, env: Sequence[str] = (), *, name: str = ""
) -> Key:
    """Return the key of a provider that needs one; `name` is the provider's name for users.

    :raises ProviderAuthError: when there is none; the message says how to set one.
    """
    if key := await keys.find(provider_id, env):
        return key
    text = f"{name or provider_id} needs a key. {key_advice(provider_id, env)}"
    raise ProviderAuthError(text, provider_id=provider_id)


def key_advice(provider_id: str, env: Sequence[str] = (), *, refused: Key | None = None) -> str:
    """Return how to set a provider's key, or to replace a refused key, without a full stop."""
    option = f"set `provider.{provider_id}.options.apiKey` in your configuration"
    variables = f"set {' or '.join(env)}, or " if env else ""
    advice = f"`pegboard auth login {provider_id}` saves one; or {variables}{option}"
    if refused is None or not refused.remedy:
        return advice
    return f"The key is from {refused.source}: {refused.remedy}. {advice}"
