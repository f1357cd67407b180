"""The order in which keys are looked for: the user's word, the environment, what was kept."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigError, ProviderAuthError
from pegboard.kit.redact import secret_values
from pegboard.providers.provider import Key, Renew
from pegboard.schema.config import Config, ProviderConfig

RENEW_TIMEOUT_S = 30.0
"""A plugin asks its provider for another token; a request waits for it."""
_RING = "the keyring"
_log = logging.getLogger("pegboard.credentials")


class KeyLookup:
    """The keys of an open project, by its configuration and its environment.

    `file` is that of the kept keys, `root` the project's folder. What a key command prints and
    what the keyring has is asked for once.
    """

    def __init__(self, config: Config, env: Mapping[str, str], *, file: Path, root: Path) -> None:
        self._config = config
        self._env = env
        self._file = file
        self._root = root
        self._variables: set[str] = set()
        self._given: dict[str, Key] = {}
        self._renewers: dict[str, Renew] = {}
        self._asking = asyncio.Lock()
        self._hidden: Callable[[], Iterable[str]] = tuple

    def note(self, variables: Iterable[str]) -> None:
        """Take these variables for those of keys, before anybody asks for one."""
        self._variables.update(variables)

    def hide(self, values: Callable[[], Iterable[str]]) -> None:
        """Have these among `values`: secrets that are no keys of providers."""
        self._hidden = values

    def renew_with(self, provider_id: str, renew: Renew) -> None:
        """As `Keys.renew_with`."""
        self._renewers[provider_id] = renew

    async def find(self, provider_id: str, env: Sequence[str] = ()) -> Key | None:
        """As `Keys.find`; a key that the user names by its label comes before the environment."""
        said = self._said(provider_id)
        if key := _option(provider_id, said) or self._variable(said, env):
            return key
        if _has_command(said):
            ask = partial(self._printed, provider_id, said)
            return await self._once(f"{provider_id} command", ask)
        credential = await asyncio.to_thread(self._kept, provider_id, said)
        if _is_in_ring(credential):
            ask = partial(self._ringed, provider_id, said)
            return await self._once(_entry(provider_id, said), ask)
        if _has_ended(credential):
            credential = await self._renewed(provider_id, said)
        key = self._of_file(credential)
        if key is None and said.key is not None:
            text = (
                f"no key of {provider_id} is kept as {said.key}, which `provider.{provider_id}.key`"
                f" names; `pegboard auth login {provider_id} --as {said.key}` keeps one"
            )
            raise ProviderAuthError(text, provider_id=provider_id)
        return key

    def source(self, provider_id: str, env: Sequence[str] = ()) -> str | None:
        """As `Keys.source`."""
        said = self._said(provider_id)
        if key := _option(provider_id, said) or self._variable(said, env):
            return key.source
        if _has_command(said):
            return _command(said)
        credential = self._kept(provider_id, said)
        if _is_in_ring(credential):
            return _RING if self._ring_allowed() else None
        if _has_ended(credential) and provider_id in self._renewers:
            return str(self._file)
        key = self._of_file(credential)
        return key.source if key else None

    def variables(self) -> tuple[str, ...]:
        """As `Keys.variables`: the providers' own, and those from which settings take a key."""
        known = {value for _, value in self._known()}
        return tuple({*self._variables, *(n for n, value in self._env.items() if value in known)})

    def values(self) -> tuple[str, ...]:
        """As `Keys.values`."""
        found = dict(self._known())
        found |= {f"secret {at}": value for at, value in enumerate(self._hidden())}
        return secret_values({**self._env, **found}, [*self._variables, *found])

    def _said(self, provider_id: str) -> ProviderConfig:
        return self._config.provider.get(provider_id, ProviderConfig())

    def _variable(self, said: ProviderConfig, env: Sequence[str]) -> Key | None:
        names = said.env or env
        self._variables.update(names)
        if said.key is not None:
            return None
        name = next((name for name in names if self._env.get(name)), None)
        return Key(self._env[name], f"the variable {name}") if name else None

    async def _once(self, name: str, ask: Callable[[], Awaitable[Key]]) -> Key:
        """What is asked for takes time and may need a person: nobody asks for it twice."""
        async with self._asking:
            if name not in self._given:
                self._given[name] = await ask()
            return self._given[name]

    async def _renewed(self, provider_id: str, said: ProviderConfig) -> Mapping[str, Any]:
        """The sign-in as the plugin renews it, kept for all processes.

        :raises ProviderAuthError: when it does not.
        """
        from pegboard.credentials.keyfile import KeyFile

        async with self._asking:  # who waited here finds it renewed
            credential = await asyncio.to_thread(self._kept, provider_id, said)
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
        from pegboard.credentials.keysources import printed_key

        home = Path(self._env.get("HOME") or Path.home())
        argv = said.key_command
        value = await printed_key(provider_id, argv, self._env, home=home, root=self._root)
        return Key(value, _command(said))

    async def _ringed(self, provider_id: str, said: ProviderConfig) -> Key:
        from pegboard.credentials.keysources import ring_key

        why = "it is switched off"
        try:
            if self._ring_allowed():
                value = await ring_key(_entry(provider_id, said))
                if value:
                    return Key(value, _RING)
                why = "it has none"
        except ConfigError as error:
            why = str(error)
        text = f"the key of {provider_id} is kept in the keyring, which does not give it: {why}"
        raise ProviderAuthError(text, provider_id=provider_id)

    def _ring_allowed(self) -> bool:
        from pegboard.credentials.keysources import ring_allowed

        return ring_allowed(self._config, self._env)

    def _kept(self, provider_id: str, said: ProviderConfig) -> Mapping[str, Any]:
        """What the file has of the provider; nothing where it cannot be used."""
        return self._all_kept().get(_entry(provider_id, said), {})

    def _all_kept(self) -> Mapping[str, Mapping[str, Any]]:
        if not self._file.exists():
            return {}
        from pegboard.credentials.keyfile import KeyFile  # not where none is kept

        known, damage = KeyFile(self._file).read()
        if damage:
            _log.error("%s cannot be used, and the keys in it do not count: %s", self._file, damage)
        return known

    def _of_file(self, credential: Mapping[str, Any]) -> Key | None:
        if not credential:
            return None
        from pegboard.credentials.keyfile import key_of

        value = key_of(credential)
        return Key(value, str(self._file)) if value else None

    def _known(self) -> Iterator[tuple[str, str]]:
        """What is known beside the environment, each under a name that is no variable's."""
        for name, said in self._config.provider.items():
            if key := _option(name, said):
                yield f"{name} option", key.value
        for name, key in self._given.items():
            yield f"{name} given", key.value
        for name, credential in self._all_kept().items():
            key = self._of_file(credential)
            found = (key and key.value, credential.get("access"), credential.get("refresh"))
            for at, value in enumerate(found):
                if isinstance(value, str):
                    yield f"{name} kept {at}", value


def _option(provider_id: str, said: ProviderConfig) -> Key | None:
    value = said.options.get("apiKey")
    if not isinstance(value, str) or not value:
        return None
    return Key(value, f"`provider.{provider_id}.options.apiKey`")


def _has_command(said: ProviderConfig) -> bool:
    return bool(said.key_command) and said.key is None


def _command(said: ProviderConfig) -> str:
    return f"the command {said.key_command[0]}"


def _entry(provider_id: str, said: ProviderConfig) -> str:
    from pegboard.credentials.keyfile import entry_name

    return entry_name(provider_id, said.key)


def _has_ended(credential: Mapping[str, Any]) -> bool:
    from pegboard.credentials.keyfile import key_of

    return credential.get("type") == "oauth" and key_of(credential) is None


def _is_in_ring(credential: Mapping[str, Any]) -> bool:
    return credential.get("type") == "keyring"
