"""The stored keys of providers, and sign-ins by plugins with `pegboard auth login --with`.

Keys come from a command of the user, from the system's keyring, or from a file. The file also
stores sign-ins. A plugin renews its expired sign-in before the next request to the provider.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pegboard import Host, Workspace, hookimpl, hookspec
from pegboard.app import UserFolders
from pegboard.errors import ConfigError, ProviderAuthError
from pegboard.providers import Key, KeyStore
from pegboard.schema.config import Config, ProviderConfig

RENEW_TIMEOUT_S = 30.0
"""A plugin asks its provider for another token; a request waits for it."""
_RING = "the keyring"
_log = logging.getLogger("pegboard.credentials")
Renew = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]


class Login(Protocol):
    """A way to sign in with a provider, such as a code that the user types on its site.

    The result is a credential: `{"type": "api", "key": ...}`, or `{"type": "oauth", "access": ...,
    "refresh": ..., "expires": ...}`. `expires` is in milliseconds since 1970, or 0 for never. The
    credential is stored in the user's file of keys.
    """

    @property
    def provider_id(self) -> str:
        """The provider for which the sign-in is valid."""
        ...

    @property
    def name(self) -> str:
        """The name of this sign-in for `--with`."""
        ...

    async def sign_in(self, tell: Callable[[str], None]) -> Mapping[str, Any]:
        """Return the credential after the user has signed in; `tell` shows the user a line.

        :raises ProviderError: when the sign-in fails, or takes too long.
        """
        ...

    async def renew(self, credential: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Renew an expired credential; return None when the user must sign in again."""
        ...


@hookspec("collect", since="0.1")
def register_logins(config: Config) -> Sequence[Login] | None:
    """Return ways to sign in with providers that need more than a key.

    Called when the App opens, and for `pegboard auth login`. Collect: a plugin that raises is
    reported and left out.

    - config: the merged configuration; the plugin's own is under `config.plugins[name]`.

    ```python
    from collections.abc import Callable, Mapping
    from typing import Any

    from pegboard import hookimpl
    from pegboard_plugins.auth import Login


    class Fixed:
        provider_id, name = "house", "badge"

        async def sign_in(self, tell: Callable[[str], None]) -> Mapping[str, Any]:
            tell("hold your badge to the reader")
            return {"type": "api", "key": "k"}

        async def renew(self, credential: Mapping[str, Any]) -> Mapping[str, Any]:
            return credential


    @hookimpl(optionalhook=True)
    async def register_logins() -> tuple[Login, ...]:
        return (Fixed(),)
    ```
    """


@hookimpl
def register_hooks() -> tuple[Callable[..., object], ...]:
    """Register the hook with which other plugins add sign-ins."""
    return (register_logins,)


@hookimpl
async def register_keystore(
    env: Mapping[str, str], places: UserFolders, workspace: Workspace
) -> KeyStore:
    """Return the user's key commands, the system's keyring, and the key files."""
    return KeptKeyStore(places, env, root=workspace.worktree)


@hookimpl
async def startup(app: Host) -> None:
    """Register the functions with which plugins renew their sign-ins."""
    if app.hooks.has(register_logins):
        for answer in await app.hooks.collect(register_logins, config=app.config):
            app.keys.renew_with(answer.value.provider_id, answer.value.renew)


class KeptKeyStore:
    """The stored keys of providers, for the project at `root`; see `KeyStore`.

    Key commands and the keyring are asked once for each key.
    """

    def __init__(self, places: UserFolders, env: Mapping[str, str], *, root: Path) -> None:
        self._places = places
        self._file = places.keys
        self._env = env
        self._root = root
        self._given: dict[str, Key] = {}
        self._renewers: dict[str, Renew] = {}
        self._asking = asyncio.Lock()

    def renew_with(self, provider_id: str, renew: Renew) -> None:
        """Renew the provider's sign-in with this function from now on."""
        self._renewers[provider_id] = renew

    async def find(self, provider_id: str, config: Config) -> Key | None:
        """Return the provider's key from the user's key command, the keyring or the key file.

        If the configuration has a label in `provider.ID.key`, return the key under this label.
        """
        said = _settings(provider_id, config)
        if _has_command(said):
            ask = partial(self._printed, provider_id, said)
            return await self._once(f"{provider_id} command", ask)
        credential = await asyncio.to_thread(self._stored, provider_id, said)
        if _is_in_ring(credential):
            ask = partial(self._ringed, provider_id, config)
            return await self._once(_entry(provider_id, said), ask)
        if _has_ended(credential):
            credential = await self._renewed(provider_id, said)
        key = self._of_file(credential, remedy=_replacing(provider_id, said))
        if key is None and said.key is not None:
            text = (
                f"no key of {provider_id} is saved as {said.key}, which"
                f" `provider.{provider_id}.key` names;"
                f" `pegboard auth login {provider_id} --as {said.key}` saves one"
            )
            raise ProviderAuthError(text, provider_id=provider_id)
        return key

    def source(self, provider_id: str, config: Config) -> str | None:
        """Return where the key comes from (command, keyring or file), or None without a key."""
        said = _settings(provider_id, config)
        if _has_command(said):
            return _command(said)
        credential = self._stored(provider_id, said)
        if _is_in_ring(credential):
            return _RING if self._ring_allowed(config) else None
        if _has_ended(credential) and provider_id in self._renewers:
            return str(self._file)
        key = self._of_file(credential)
        return key.source if key else None

    def secret(self, plugin: str, name: str) -> str | None:
        """Return the secret that `pegboard plugins secret set` has stored for a plugin, or None."""
        kept = self._secrets().get(plugin, {}).get(name)
        return kept if isinstance(kept, str) else None

    def values(self) -> Iterator[str]:
        """Yield the keys read so far, all keys and tokens in the key file, and plugins' secrets."""
        yield from (key.value for key in self._given.values())
        for credential in self._all_kept().values():
            key = self._of_file(credential)
            found = (key and key.value, credential.get("access"), credential.get("refresh"))
            yield from (each for each in found if isinstance(each, str))
        for table in self._secrets().values():
            yield from (each for each in table.values() if isinstance(each, str))

    async def _once(self, name: str, ask: Callable[[], Awaitable[Key]]) -> Key:
        """Return the key `name`; call `ask` only once, since reading a key may need the user."""
        async with self._asking:
            if name not in self._given:
                self._given[name] = await ask()
            return self._given[name]

    async def _renewed(self, provider_id: str, said: ProviderConfig) -> Mapping[str, Any]:
        """Let the plugin renew the provider's sign-in; store the new sign-in for all processes.

        :raises ProviderAuthError: when the plugin does not renew it.
        """
        from pegboard_plugins.shared.frontend import KeyFile

        async with self._asking:  # who waited here finds it renewed
            credential = await asyncio.to_thread(self._stored, provider_id, said)
            renew = self._renewers.get(provider_id)
            if not _has_ended(credential):
                return credential
            async with asyncio.timeout(RENEW_TIMEOUT_S):
                renewed = await renew(credential) if renew else None
            if renewed is None:
                again = f"`pegboard auth login {provider_id}` begins another"
                text = f"the sign-in with {provider_id} has ended; {again}"
                raise ProviderAuthError(text, provider_id=provider_id)
            entry = _entry(provider_id, said)
            await asyncio.to_thread(KeyFile(self._file).put, entry, renewed)
            return renewed

    async def _printed(self, provider_id: str, said: ProviderConfig) -> Key:
        from pegboard_plugins.auth.keycommand import printed_key

        home = Path(self._env.get("HOME") or Path.home())
        argv = said.key_command
        value = await printed_key(provider_id, argv, self._env, home=home, root=self._root)
        remedy = "check what it prints, and start Pegboard again"
        return Key(value, _command(said), remedy=remedy)

    async def _ringed(self, provider_id: str, config: Config) -> Key:
        from pegboard_plugins.auth.systemkeyring import ring_key

        why = "it is switched off"
        try:
            if self._ring_allowed(config):
                said = _settings(provider_id, config)
                value = await ring_key(_entry(provider_id, said))
                if value:
                    remedy = f"{_replacing(provider_id, said)}; then start Pegboard again"
                    return Key(value, _RING, remedy=remedy)
                why = "it has none"
        except ConfigError as error:
            why = str(error)
        text = f"the key of {provider_id} is in the keyring, which did not return it: {why}"
        raise ProviderAuthError(text, provider_id=provider_id)

    def _ring_allowed(self, config: Config) -> bool:
        from pegboard_plugins.auth.systemkeyring import ring_allowed

        return ring_allowed(config, self._env)

    def _stored(self, provider_id: str, said: ProviderConfig) -> Mapping[str, Any]:
        """Return the provider's entry in the user's key file; empty if it is missing or invalid."""
        return self._all_kept().get(_entry(provider_id, said), {})

    def _all_kept(self) -> Mapping[str, Mapping[str, Any]]:
        if not self._file.exists():
            return {}
        from pegboard_plugins.shared.frontend import KeyFile  # not where none is kept

        known, damage = KeyFile(self._file).read()
        if damage:
            _log.error("%s cannot be used, and the keys in it do not count: %s", self._file, damage)
        return known

    def _secrets(self) -> Mapping[str, Mapping[str, Any]]:
        if not self._places.secrets.exists():
            return {}
        from pegboard_plugins.shared.frontend import kept_secrets

        return kept_secrets(self._places)

    def _of_file(self, credential: Mapping[str, Any], *, remedy: str = "") -> Key | None:
        if not credential:
            return None
        from pegboard_plugins.shared.frontend import key_of

        value = key_of(credential)
        return Key(value, str(self._file), remedy=remedy) if value else None


def _settings(provider_id: str, config: Config) -> ProviderConfig:
    return config.provider.get(provider_id, ProviderConfig())


def _has_command(said: ProviderConfig) -> bool:
    return bool(said.key_command) and said.key is None


def _command(said: ProviderConfig) -> str:
    return f"the command {said.key_command[0]}"


def _replacing(provider_id: str, said: ProviderConfig) -> str:
    label = f" --as {said.key}" if said.key else ""
    return f"`pegboard auth login {provider_id}{label}` replaces it"


def _entry(provider_id: str, said: ProviderConfig) -> str:
    return f"{provider_id}/{said.key}" if said.key else provider_id


def _has_ended(credential: Mapping[str, Any]) -> bool:
    if credential.get("type") != "oauth":
        return False
    from pegboard_plugins.shared.frontend import key_of

    return key_of(credential) is None


def _is_in_ring(credential: Mapping[str, Any]) -> bool:
    return credential.get("type") == "keyring"
