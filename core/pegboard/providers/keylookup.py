"""The lookup of API keys: in the user's settings, then the environment, then the secret store."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from pegboard.errors import ProviderAuthError
from pegboard.kit.redact import secret_values
from pegboard.schema.config import Config, ProviderConfig


class Key:
    """A provider's API key; neither its `repr` nor JSON shows the `value`.

    `source` tells users where the key is from, such as "the variable OPENAI_API_KEY". `remedy`
    tells them what to do if it is refused, such as "change it or unset it".
    """

    __slots__ = ("remedy", "source", "value")

    def __init__(self, value: str, source: str, *, remedy: str = "") -> None:
        self.value, self.source, self.remedy = value, source, remedy

    def __repr__(self) -> str:
        return f"Key(source={self.source!r})"


Renew = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
"""The credential that replaces an expired one; None when it cannot be renewed."""


class KeyStore(Protocol):
    """A store of keys and of plugins' secrets, used after settings and environment.

    `config` is the configuration of the open project. The store is asked only if neither settings
    nor environment have a key.
    """

    async def find(self, provider_id: str, config: Config) -> Key | None:
        """Return the stored API key of a provider, or None if there is none.

        The settings may select the key by its label, or name a command that prints the key.
        """
        ...

    def source(self, provider_id: str, config: Config) -> str | None:
        """Return the source of a stored key, as `Keys.source` does."""
        ...

    def renew_with(self, provider_id: str, renew: Renew) -> None:
        """Register the function `renew`, as `Keys.renew_with` documents."""
        ...

    def secret(self, plugin: str, name: str) -> str | None:
        """Return the stored secret `name` of a plugin, or None if there is none."""
        ...

    def values(self) -> Iterable[str]:
        """Return all secret values: keys, tokens and the secrets of plugins."""
        ...


class Keys:
    """The keys of providers, looked up according to the user's settings.

    First comes the table `provider.ID` of the configuration. Then comes the first set variable of
    the user's list of variables, or else of `env`. Last comes a plugin's `store`: the user's key
    command, the keyring, and the file that `pegboard auth login` writes. `hidden` returns secrets
    that are not keys, which `values` includes.
    """

    def __init__(
        self,
        config: Config,
        env: Mapping[str, str],
        store: KeyStore | None = None,
        *,
        hidden: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._config = config
        self._env = env
        self._store = store
        self._hidden = hidden
        self._variables: set[str] = set()

    def note(self, variables: Iterable[str]) -> None:
        """Treat these variables as secret, even before a key is looked up."""
        self._variables.update(variables)

    def renew_with(self, provider_id: str, renew: Renew) -> None:
        """Renew the provider's stored sign-in by calling `renew` when the sign-in has expired."""
        if self._store is not None:
            self._store.renew_with(provider_id, renew)

    async def find(self, provider_id: str, env: Sequence[str] = ()) -> Key | None:
        """Return the API key for a request to a provider, or None if there is none.

        A key that the user selects by its label has precedence over the environment.

        :raises ProviderAuthError: when the user's source for the key fails, or is a variable that
          is not set.
        """
        key = self._given(provider_id, env)
        if key is None and self._store is not None:
            key = await self._store.find(provider_id, self._config)
        said = self._config.provider.get(provider_id, ProviderConfig()).options.get("apiKey")
        if key is None and (unset := unset_variables(said)):
            raise ProviderAuthError(
                f"{provider_id}: `provider.{provider_id}.options.apiKey` is {said}, and the "
                f"variable {unset[0]} is not set; set it, or run `pegboard auth login "
                f"{provider_id}`",
                provider_id=provider_id,
            )
        return key

    def source(self, provider_id: str, env: Sequence[str] = ()) -> str | None:
        """Return the source of the API key, or None without a key; no command is run."""
        if key := self._given(provider_id, env):
            return key.source
        return self._store.source(provider_id, self._config) if self._store else None

    def variables(self) -> tuple[str, ...]:
        """Return the variables that hold API keys: those of providers and those in settings."""
        known = {*self._known()}
        return tuple({*self._variables, *(n for n, value in self._env.items() if value in known)})

    def values(self) -> tuple[str, ...]:
        """Return all known secrets, longest first, in order to remove them from stored texts."""
        found = {f"known {at}": each for at, each in enumerate((*self._known(), *self._hidden()))}
        return secret_values({**self._env, **found}, [*self._variables, *found])

    def _given(self, provider_id: str, env: Sequence[str]) -> Key | None:
        """Return the key that the settings contain, or else the first set variable that has a key.

        If the settings select a stored key, variables do not count.
        """
        said = self._config.provider.get(provider_id, ProviderConfig())
        names = said.env or env
        self._variables.update(names)
        if value := _option(said):
            return Key(value, f"`provider.{provider_id}.options.apiKey`", remedy="change it there")
        name = next((name for name in names if self._env.get(name)), None)
        if name is None or said.key is not None:
            return None
        remedy = "it wins over a stored key: change it or unset it"
        return Key(self._env[name], f"the variable {name}", remedy=remedy)

    def _known(self) -> Iterator[str]:
        """Yield the known API keys that are not in the environment."""
        yield from filter(None, map(_option, self._config.provider.values()))
        yield from self._store.values() if self._store else ()


def _option(said: ProviderConfig) -> str:
    value = said.options.get("apiKey")
    return value if isinstance(value, str) and not unset_variables(value) else ""


def unset_variables(value: object) -> tuple[str, ...]:
    """Return the variables that a setting still refers to because the variables are not set."""
    if not (isinstance(value, str) and "{env:" in value):
        return ()
    return tuple(name.strip() for name in re.findall(r"\{env:([^{}]+)\}", value))
