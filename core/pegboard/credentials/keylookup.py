"""The order in which keys are looked for: the user's word, the environment, what was kept."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pegboard.contract.providers import Key
from pegboard.errors import ProviderAuthError
from pegboard.kit.redact import secret_values
from pegboard.paths import Places
from pegboard.schema.config import Config, ProviderConfig

_log = logging.getLogger("pegboard.credentials")


class KeyLookup:
    """The keys of an open project, by its configuration and its environment."""

    def __init__(self, config: Config, env: Mapping[str, str], *, places: Places) -> None:
        self._config = config
        self._env = env
        self._places = places
        self._variables: set[str] = set()

    def note(self, variables: Iterable[str]) -> None:
        """Take these variables for those of keys, before anybody asks for one."""
        self._variables.update(variables)

    async def find(self, provider_id: str, env: Sequence[str] = ()) -> Key | None:
        """As `Keys.find`; a key that the user names by its label comes before the environment."""
        said = self._said(provider_id)
        if key := _option(provider_id, said) or self._variable(said, env):
            return key
        return await asyncio.to_thread(self._kept, provider_id, said)

    def source(self, provider_id: str, env: Sequence[str] = ()) -> str | None:
        """As `Keys.source`."""
        said = self._said(provider_id)
        if key := _option(provider_id, said) or self._variable(said, env):
            return key.source
        try:
            key = self._kept(provider_id, said)
        except ProviderAuthError:
            return None
        return key.source if key else None

    def values(self) -> tuple[str, ...]:
        """As `Keys.values`."""
        found = dict(self._known())
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

    def _kept(self, provider_id: str, said: ProviderConfig) -> Key | None:
        from pegboard.credentials.keyfile import KeyFile, entry_name, key_of

        file, entry = KeyFile(self._places.keys), entry_name(provider_id, said.key)
        known, damage = file.read()
        if damage:
            _log.error("%s cannot be used, and the keys in it do not count: %s", file.path, damage)
        value = key_of(known.get(entry, {}))
        if value:
            return Key(value, str(file.path))
        if said.key is not None:
            text = (
                f"no key of {provider_id} is kept as {said.key}, which `provider.{provider_id}.key`"
                f" names; `pegboard auth login {provider_id} --as {said.key}` keeps one"
            )
            raise ProviderAuthError(text, provider_id=provider_id)
        return None

    def _known(self) -> Iterator[tuple[str, str]]:
        """What is known beside the environment, each under a name that is no variable's."""
        for name, said in self._config.provider.items():
            if key := _option(name, said):
                yield f"{name} option", key.value
        if not self._places.keys.exists():
            return
        from pegboard.credentials.keyfile import KeyFile, key_of  # not where none is kept

        kept, _ = KeyFile(self._places.keys).read()
        for name, credential in kept.items():
            if value := key_of(credential):
                yield f"{name} kept", value


def _option(provider_id: str, said: ProviderConfig) -> Key | None:
    value = said.options.get("apiKey")
    if not isinstance(value, str) or not value:
        return None
    return Key(value, f"`provider.{provider_id}.options.apiKey`")
