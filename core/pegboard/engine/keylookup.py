"""The order in which keys are looked for: the user's word, the environment, what is kept."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pegboard.kit.redact import secret_values
from pegboard.providers import Key, KeyStore, Renew
from pegboard.schema.config import Config, ProviderConfig


class KeyLookup:
    """The keys of an open project: of its configuration and environment, then a plugin's `store`.

    `hidden` are secrets that are no keys of providers: `values` has them too.
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
        """Take these variables for those of keys, before anybody asks for one."""
        self._variables.update(variables)

    def renew_with(self, provider_id: str, renew: Renew) -> None:
        """As `Keys.renew_with`."""
        if self._store is not None:
            self._store.renew_with(provider_id, renew)

    async def find(self, provider_id: str, env: Sequence[str] = ()) -> Key | None:
        """As `Keys.find`; a key that the user names by its label comes before the environment."""
        if (key := self._given(provider_id, env)) or self._store is None:
            return key
        return await self._store.find(provider_id, self._config)

    def source(self, provider_id: str, env: Sequence[str] = ()) -> str | None:
        """As `Keys.source`."""
        if key := self._given(provider_id, env):
            return key.source
        return self._store.source(provider_id, self._config) if self._store else None

    def variables(self) -> tuple[str, ...]:
        """As `Keys.variables`: the providers' own, and those from which settings take a key."""
        known = {*self._known()}
        return tuple({*self._variables, *(n for n, value in self._env.items() if value in known)})

    def values(self) -> tuple[str, ...]:
        """As `Keys.values`."""
        found = {f"known {at}": each for at, each in enumerate((*self._known(), *self._hidden()))}
        return secret_values({**self._env, **found}, [*self._variables, *found])

    def _given(self, provider_id: str, env: Sequence[str]) -> Key | None:
        """The key of the settings, else of the first of the provider's variables that is set."""
        said = self._config.provider.get(provider_id, ProviderConfig())
        names = said.env or env
        self._variables.update(names)
        if value := _option(said):
            return Key(value, f"`provider.{provider_id}.options.apiKey`")
        name = next((name for name in names if self._env.get(name)), None)
        if name is None or said.key is not None:
            return None
        return Key(self._env[name], f"the variable {name}")

    def _known(self) -> Iterator[str]:
        """The keys that are known beside the environment's."""
        yield from filter(None, map(_option, self._config.provider.values()))
        yield from self._store.values() if self._store else ()


def _option(said: ProviderConfig) -> str:
    value = said.options.get("apiKey")
    return value if isinstance(value, str) else ""
