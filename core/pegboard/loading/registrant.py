"""A plugin of one App, from its discovery to its registration.

The module also contains the plugin's folders, log, secrets and options.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec.structs import replace

from pegboard.contract.plugin import Origin, Plugin, field_names
from pegboard.kit.redact import redact
from pegboard.kit.suggestions import did_you_mean
from pegboard.loading.discovery import PluginProblem, attempt
from pegboard.paths import UserFolders
from pegboard.providers.keylookup import KeyStore
from pegboard.schema.config import Config, PluginConfig
from pegboard.trust.projectcode import CodeFile

if TYPE_CHECKING:
    from logging import Logger, LoggerAdapter

    from pegboard.kit.pluginhttp import PluginHttp


_VARIABLE = "PEGBOARD_SECRET_"


def variable_of(plugin: str, name: str) -> str:
    """Return the name of the environment variable that holds a plugin's secret."""
    return _VARIABLE + re.sub(r"\W", "_", f"{plugin}_{name}").upper()


class Belongings:
    """The resources that an App's plugins share: the user's folders, secrets and an HTTP client.

    `store` holds the saved secrets; it is None until a plugin provides a store.
    """

    def __init__(self, places: UserFolders, env: Mapping[str, str]) -> None:
        self.places = places
        self.store: KeyStore | None = None
        self._env = env
        self._hidden: set[str] = set()
        self._http: PluginHttp | None = None

    def values(self) -> tuple[str, ...]:
        """Return all secrets of plugins, the longest first; no output may contain a secret."""
        named = (value for name, value in self._env.items() if name.startswith(_VARIABLE))
        found = {*named, *(self.store.values() if self.store else ()), *self._hidden} - {""}
        return tuple(sorted(found, key=len, reverse=True))

    def secret(self, plugin: str, name: str) -> str | None:
        """Return a plugin's secret from the environment, else from the store, or None."""
        given = self._env.get(variable_of(plugin, name))
        return given or (self.store.secret(plugin, name) if self.store else None)

    def hide(self, values: Iterable[str]) -> None:
        """Treat these values as secrets too, since options of plugins can be secret."""
        self._hidden.update(values)

    @property
    def http(self) -> "PluginHttp":
        """The HTTP client, created at the first use."""
        if self._http is None:
            from pegboard.kit.pluginhttp import PluginHttp

            self._http = PluginHttp()
        return self._http

    async def aclose(self) -> None:
        """Close the HTTP client."""
        if self._http is not None:
            await self._http.aclose()


class Handle:
    """One plugin's folders, log and secrets; plugins receive it as their `plugin` argument."""

    def __init__(self, name: str, belongings: Belongings, options: object) -> None:
        self.name = name
        self.options: Any = options
        self._belongings = belongings

    @property
    def data_dir(self) -> Path:
        """The plugin's folder for data, below the user's data folder; created if missing."""
        return self._folder(self._belongings.places.data)

    @property
    def cache_dir(self) -> Path:
        """The plugin's folder for caches, below the user's cache folder; created if missing."""
        return self._folder(self._belongings.places.cache)

    @cached_property
    def logger(self) -> "LoggerAdapter[Logger]":
        """The logger `pegboard.plugins.NAME`, which masks secrets."""
        import logging  # 2 ms that only who logs pays

        belongings, name = self._belongings, self.name

        class Named(logging.LoggerAdapter[logging.Logger]):
            def log(self, level: int, msg: object, *args: object, **facts: Any) -> None:  # noqa: ANN401 - logging's
                if self.isEnabledFor(level):
                    text = redact(str(msg) % args if args else str(msg), belongings.values())
                    self.logger.log(level, "plugin %s: %s", name, text, **facts)

        return Named(logging.getLogger(f"pegboard.plugins.{name}"), {})

    @property
    def http(self) -> "PluginHttp":
        """The App's HTTP client for plugins."""
        return self._belongings.http

    def secret(self, name: str) -> str | None:
        """Return a secret from the environment, else from the store, or None."""
        return self._belongings.secret(self.name, name)

    def _folder(self, root: Path) -> Path:
        folder = root / "plugins" / re.sub(r"[^\w.-]", "_", self.name).lstrip(".")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


class Registrant(msgspec.Struct, kw_only=True, eq=False):
    """A plugin from its discovery on; `file` is its source file, None for an installed plugin.

    `table` is the name of the plugin's settings. This is the plugin's name. It is the full name if
    a built-in plugin has the same name, or if the user has settings under the full name. `key`
    distinguishes plugins with the same name. A `forbidden` plugin is not imported; the string is
    the reason.

    `plugin` is None if the plugin was not loaded, and `error` is the reason. `unfit` is the
    imported object if it cannot be used. `is_double` means that the same object is loaded under
    another name. `options` is the class of its options. `handle` is the value that hook functions
    receive as `plugin`. `switch` maps each tool that is off by default to the dotted key of the
    setting that enables it.
    """

    name: str
    origin: Origin
    load: Callable[[], object]
    location: str = ""
    version: str = ""
    distribution: str = ""
    table: str = ""
    file: CodeFile | None = None
    forbidden: str = ""
    key: str = ""
    handle: Plugin | None = None
    plugin: object = None
    unfit: object = None
    is_double: bool = False
    options: type | None = None
    secrets: tuple[str, ...] = ()
    switch: Mapping[str, str] = {}
    hooks: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    load_ms: float = 0.0
    error: str = ""

    @property
    def full_name(self) -> str:
        """The name with the distribution, unique among plugins, such as `house-plugins/guard`."""
        return f"{self.distribution or self.origin}/{self.name}"

    def enter(self, others: "Sequence[Registrant]") -> PluginProblem | None:
        """Import the plugin unless it is forbidden; return the problem if this import fails."""
        self.error = self.forbidden
        if self.forbidden:
            return None
        started = perf_counter()
        plugin = self.load()
        self.load_ms = (perf_counter() - started) * 1000
        if isinstance(plugin, PluginProblem):
            return self._failed(plugin)
        self.plugin = plugin
        same = next((each for each in others if each.plugin is plugin), None)
        self.is_double = same is not None
        if twin := self._twin(others):
            text = (
                f"{twin.distribution} and {self.distribution} both have a plugin {self.name}, and"
                f" that of {twin.distribution} is loaded; uninstall one, or write"
                f' [plugins."{self.full_name}"] enabled = false'
            )
            return self._failed(PluginProblem("clash", self.name, text))
        if same is not None:
            text = f"it is the very object that is loaded as {same.name} already"
            return self._failed(PluginProblem("clash", self.name, text))
        return None

    def judge(
        self,
        config: Config,
        locate: Callable[[str], str],
        belongings: Belongings,
        namesakes: Sequence[str] = (),
    ) -> list[PluginProblem]:
        """Check the plugin's options and store them; leave the plugin out if they are invalid.

        `namesakes` are the settings names of all plugins with the same name as this plugin.
        """
        table = config.plugins.get(self.table, PluginConfig()).options
        found = options_of(self.plugin, table)
        self.handle = Handle(self.name, belongings, found.value)
        self.options = found.model
        self.secrets = ("",) if self.plugin is None else found.secrets
        switch = getattr(self.plugin, "switch", None)
        self.switch = switch if isinstance(switch, Mapping) else {}
        belongings.hide(text for key in found.secrets for text in texts_in(table.get(key)))
        flaws = found.flaws
        if self.plugin is not None and self.options is None and not flaws:
            flaws = self._unheard(table, namesakes)
        problems = []
        for flaw in flaws:
            key = ".".join(filter(None, ("plugins", quoted(self.table), "options", flaw.key)))
            way = f"; `pegboard config set {key} VALUE` sets it" if flaw.text == MISSING else ""
            text = f"{locate(key)}: {flaw.text}{way}"
            problems.append(self._failed(PluginProblem("options", self.name, text)))
        return problems

    def _failed(self, problem: PluginProblem) -> PluginProblem:
        """Leave the plugin out because of a problem, and return the problem with its name set."""
        self.unfit, self.plugin = self.plugin or self.unfit, None
        self.error = self.error or problem.text
        return replace(problem, plugin=self.name)

    def _twin(self, others: "Sequence[Registrant]") -> "Registrant | None":
        """Return the plugin in `others` with the same name from another distribution, or None."""
        if self.origin != "installed":
            return None
        same = (each for each in others if (each.origin, each.name) == (self.origin, self.name))
        return next((each for each in same if each.plugin), None)

    def _unheard(self, table: Mapping[str, object], namesakes: Sequence[str]) -> "tuple[Flaw, ...]":
        """Return, as errors, the options that the user has set but the plugin does not declare."""
        if self.origin != "builtin":
            return ()
        others = [f'[plugins."{each}"]' for each in namesakes if each != self.table]
        hint = f"; the options of the other of this name stand in {others[0]}" if others else ""
        return tuple(Flaw(name, f"unknown option; this plugin has none{hint}") for name in table)


def quoted(name: str) -> str:
    """Put a name in quotation marks if a dotted key needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'


MISSING = "is required, and missing"
_MISSING = "Object missing required field `(.+)`"
_EXAMPLES = {
    "Invalid RFC3339 encoded time": "09:30:00",
    "Invalid RFC3339 encoded date": "2026-03-01",
    "Invalid RFC3339 encoded datetime": "2026-03-01T09:30:00Z",
}


class Flaw(msgspec.Struct, frozen=True):
    """An error in a plugin option: the option's dotted key, and the reason, on one line."""

    key: str
    text: str


class Judged(NamedTuple):
    """The options of a plugin, as an instance of the class that it declares, and their errors.

    `model` is the class. `value` is unusable if there are flaws. `secrets` are the options to mask;
    "" stands for all options.
    """

    model: type | None
    value: object
    flaws: tuple[Flaw, ...]
    secrets: tuple[str, ...] = ()


def options_of(plugin: object, table: Mapping[str, Any]) -> Judged:
    """Parse a plugin's options from its settings; failures of the plugin's code are flaws too."""
    found = attempt(lambda: _judged(_declared(plugin), table))
    if isinstance(found, PluginProblem):
        return Judged(None, None, (Flaw("", found.text),), ("",))
    return found


def _declared(plugin: object) -> type | None:
    """Return the class of the plugin's options, or None if the plugin declares no options."""
    model = getattr(plugin, "options", None)
    return model if isinstance(model, type) and _is_model(model) else None


def _is_model(kind: type) -> bool:
    is_struct = issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)
    return is_struct or _is_pydantic(kind)


def _is_pydantic(kind: type) -> bool:
    return hasattr(kind, "model_validate") and hasattr(kind, "model_fields")


def _judged(model: type | None, table: Mapping[str, Any]) -> Judged:
    if model is None:
        return Judged(None, MappingProxyType(table), ())
    names = _names(model)
    unknown = tuple(_unknown(tuple(names), table))
    known = {name: value for name, value in table.items() if name in names}
    make = _with_pydantic if _is_pydantic(model) else _with_msgspec
    options, flaws = make(model, known)
    return Judged(model, options, (*unknown, *flaws), _secret_names(model))


def _names(model: Any) -> Mapping[str, str]:  # noqa: ANN401 - pydantic is not loaded here
    """Return the names under which options can be set, each with the attribute of its option."""
    if _is_pydantic(model):
        return {field.alias or name: name for name, field in model.model_fields.items()}
    if issubclass(model, msgspec.Struct):
        return dict(zip(model.__struct_encode_fields__, model.__struct_fields__, strict=True))
    return {name: name for name in field_names(model)}


def _secret_names(model: type, inside: frozenset[type] = frozenset()) -> tuple[str, ...]:
    """Return the options that are or contain a secret; `inside` are the classes visited so far."""
    inside |= {model}
    hints = get_type_hints(model, include_extras=True)
    marked = {
        each.name
        for each in (dataclasses.fields(model) if dataclasses.is_dataclass(model) else ())
        if each.metadata.get("secret")
    }
    fields = getattr(model, "model_fields", {})
    marked |= {name for name, each in fields.items() if any(_is_mark(one) for one in each.metadata)}
    found = {name for name, hint in hints.items() if _has_secret(hint, inside)} | marked
    return tuple(sorted(written for written, name in _names(model).items() if name in found))


def texts_in(value: object) -> Iterator[str]:
    """Yield all strings in an option's value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts_in([*value.values()])
    elif isinstance(value, list | tuple):
        yield from (text for each in value for text in texts_in(each))


def _has_secret(hint: object, inside: frozenset[type]) -> bool:
    """Return whether a type annotation marks a secret or contains an annotation that does."""
    if isinstance(hint, type) and hint.__name__ in ("SecretStr", "SecretBytes"):
        return True
    if any(_is_mark(each) for each in getattr(hint, "__metadata__", ())):
        return True
    if isinstance(hint, type) and not get_args(hint):
        return _is_model(hint) and hint not in inside and bool(_secret_names(hint, inside))
    return any(_has_secret(each, inside) for each in get_args(hint))


def _is_mark(each: object) -> bool:
    return isinstance(each, msgspec.Meta) and bool((each.extra or {}).get("secret"))


def _unknown(known: Sequence[str], table: Mapping[str, Any]) -> Iterator[Flaw]:
    for name in table:
        if name not in known:
            all_known = f"; known are {', '.join(known)}"
            yield Flaw(name, f"unknown option{did_you_mean(name, known, all_known)}")


def _with_msgspec(model: type, table: Mapping[str, Any]) -> tuple[object, tuple[Flaw, ...]]:
    try:
        return msgspec.convert(table, model), ()
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `")
        key = path.rstrip("`").lstrip("$").lstrip(".")
        if missing := re.fullmatch(_MISSING, text):
            return None, (Flaw(f"{key}.{missing[1]}".lstrip("."), MISSING),)
        example = _EXAMPLES.get(text)
        return None, (Flaw(key, f"{text}: write it as {example}" if example else text),)


def _with_pydantic(model: Any, table: Mapping[str, Any]) -> tuple[object, tuple[Flaw, ...]]:  # noqa: ANN401 - pydantic is not loaded here
    from pydantic import ValidationError

    try:
        return model.model_validate(table), ()
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        return None, tuple(
            Flaw(".".join(map(str, each["loc"])), str(each["msg"])) for each in found
        )
