"""The hook that `pegboard auth` brings, and what a plugin implements that signs its users in."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pegboard import hookspec
from pegboard.schema.config import Config


class Login(Protocol):
    """A way to sign in with a provider, such as a code that is typed on its site.

    What opens the provider is a credential: `{"type": "api", "key": ...}`, or
    `{"type": "oauth", "access": ..., "refresh": ..., "expires": ...}`, which ends at an instant in
    milliseconds since 1970, 0 for never. It is kept in the user's file of keys.
    """

    @property
    def provider_id(self) -> str:
        """The provider that it opens."""
        ...

    @property
    def name(self) -> str:
        """What `--with` calls it."""
        ...

    async def sign_in(self, tell: Callable[[str], None]) -> Mapping[str, Any]:
        """The credential, once the user has signed in; `tell` shows them a line.

        :raises ProviderError: when they cannot, or have not in time.
        """
        ...

    async def renew(self, credential: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The credential for one that has ended, None when the user must sign in again."""
        ...


@hookspec("collect")
def register_logins(config: Config) -> Sequence[Login] | None:
    """Ways to sign in with providers that take more than a key.

    Called when the App opens, and for `pegboard auth login`. Collect: a plugin that raises is
    reported and left out.

    - config: the merged configuration; the plugin's own is under `config.plugins[name]`.

    Since 0.1.
    """
