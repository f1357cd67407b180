"""A sign-in: the provider `lines` is opened by a code that the user types on its site.

    pegboard auth login lines --with device

The address is `plugins.sign_in.options.url`. The site gives a code and says by and by that the
user has typed it; its tokens last for minutes and are renewed when one has ended.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pegboard import hookimpl
from pegboard.errors import ProviderAuthError
from pegboard.schema.config import Config, PluginConfig
from pegboard_plugins.auth import Login

TYPED_WITHIN_S, WAITING = 600.0, 202


class Device:
    """Signs in with the site at `url`."""

    provider_id, name = "lines", "device"

    def __init__(self, url: str) -> None:
        self._url = url

    async def sign_in(self, tell: Callable[[str], None]) -> Mapping[str, Any]:
        """Return the tokens, once the user has typed the code.

        :raises ProviderAuthError: when the user does not type it within ten minutes.
        """
        asked = (await self._post("/code", {})).json()
        tell(f"Open {asked['open']} and type {asked['code']}")
        until = time.monotonic() + TYPED_WITHIN_S
        while time.monotonic() < until:
            answer = await self._post("/token", {"code": asked["code"]})
            if answer.status_code != WAITING:
                return _credential(answer.raise_for_status().json())
            await asyncio.sleep(asked["wait_s"])
        raise ProviderAuthError(
            "the code was not typed within ten minutes; sign in again", provider_id=self.provider_id
        )

    async def renew(self, credential: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return further tokens; None when the site gives none for these."""
        answer = await self._post("/token", {"refresh": credential["refresh"]})
        return _credential(answer.json()) if answer.is_success else None

    async def _post(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - httpx's answer
        import httpx  # 0.1 s that only a sign-in pays

        async with httpx.AsyncClient(trust_env=False) as client:
            return await client.post(self._url + path, json=body)


def _credential(tokens: Mapping[str, Any]) -> Mapping[str, Any]:
    expires = int((time.time() + tokens["seconds"]) * 1000)
    return {**tokens, "type": "oauth", "expires": expires}


@hookimpl(optionalhook=True)
async def register_logins(config: Config) -> Sequence[Login]:
    """Return the way to sign in, if the configuration has an address for it."""
    url = config.plugins.get("sign_in", PluginConfig()).options.get("url")
    return (Device(url),) if url else ()
