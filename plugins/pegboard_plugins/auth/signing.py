"""What a plugin implements that signs its users in."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol


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
