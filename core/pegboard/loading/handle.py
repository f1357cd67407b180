"""What a plugin has of its own: folders, log, secrets, and options, as it declares them."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_type_hints

import msgspec

from pegboard.contract.plugin import field_names
from pegboard.kit.redact import redacted
from pegboard.kit.suggestions import nearest_names
from pegboard.loading.discovery import Problem, attempt
from pegboard.paths import Places
from pegboard.providers import KeyStore

if TYPE_CHECKING:
    from logging import Logger, LoggerAdapter

    import httpx


_VARIABLE = "PEGBOARD_SECRET_"


def variable_of(plugin: str, name: str) -> str:
    """The variable of the environment that has a plugin's secret."""
    return _VARIABLE + re.sub(r"\W", "_", f"{plugin}_{name}").upper()


class Belongings:
    """What the plugins of one App share: the user's folders and secrets, and an HTTP client.

    `store` has the secrets that are kept, once a plugin has brought one.
    """

    def __init__(self, places: Places, env: Mapping[str, str]) -> None:
        self.places = places
        self.store: KeyStore | None = None
        self._env = env
        self._hidden: set[str] = set()
        self._http: httpx.AsyncClient | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """All secrets of plugins, for what must not show them."""
        named = (value for name, value in self._env.items() if name.startswith(_VARIABLE))
        found = {*named, *(self.store.values() if self.store else ()), *self._hidden} - {""}
        return tuple(sorted(found, key=len, reverse=True))

    def secret(self, plugin: str, name: str) -> str | None:
        """Of the environment, else what is kept."""
        given = self._env.get(variable_of(plugin, name))
        return given or (self.store.secret(plugin, name) if self.store else None)

    def hide(self, values: Iterable[str]) -> None:
        """Take these for secrets, too: options of plugins can be ones."""
        self._hidden.update(values)

    @property
    def http(self) -> "httpx.AsyncClient":
        """The client, made with the first call."""
        import httpx  # 60 ms that only who asks for it pays

        if self._http is None:
            self._http = httpx.AsyncClient(follow_redirects=True)
        return self._http

    async def aclose(self) -> None:
        """Close the client."""
        if self._http is not None:
            await self._http.aclose()


class Handle:
    """One plugin's share of them; `Plugin` is what it is to plugins."""

    def __init__(self, name: str, belongings: Belongings, options: object) -> None:
        self.name = name
        self.options: Any = options
        self._belongings = belongings

    @property
    def data_dir(self) -> Path:
        """Below the user's data."""
        return self._folder(self._belongings.places.data)

    @property
    def cache_dir(self) -> Path:
        """Below the user's cache."""
        return self._folder(self._belongings.places.cache)

    @cached_property
    def logger(self) -> "LoggerAdapter[Logger]":
        """The log `pegboard.plugins.NAME`."""
        import logging  # 2 ms that only who logs pays

        belongings, name = self._belongings, self.name

        class Named(logging.LoggerAdapter[logging.Logger]):
            def log(self, level: int, msg: object, *args: object, **facts: Any) -> None:  # noqa: ANN401 - logging's
                if self.isEnabledFor(level):
                    text = redacted(str(msg) % args if args else str(msg), belongings.values)
                    self.logger.log(level, "plugin %s: %s", name, text, **facts)

        return Named(logging.getLogger(f"pegboard.plugins.{name}"), {})

    @property
    def http(self) -> "httpx.AsyncClient":
        """The App's."""
        return self._belongings.http

    def secret(self, name: str) -> str | None:
        """Of the environment, else the stored one."""
        return self._belongings.secret(self.name, name)

    def _folder(self, root: Path) -> Path:
        folder = root / "plugins" / re.sub(r"[^\w.-]", "_", self.name).lstrip(".")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


MISSING = "is required, and missing"
DECLARED = "options"
"""The attribute of a plugin that declares the class of its options."""
_MISSING = re.compile("Object missing required field `(.+)`")


class Flaw(msgspec.Struct, frozen=True):
    """What is wrong with an option: its dotted key in the options, and why, on one line."""

    key: str
    text: str


class Judged(NamedTuple):
    """The options as the class that the plugin declares, and what is wrong with them.

    Where something is wrong, `value` has no use. `secrets` are the options that nobody may see;
    "" is all of them.
    """

    model: type | None
    value: object
    flaws: tuple[Flaw, ...]
    secrets: tuple[str, ...] = ()


def options_of(plugin: object, table: Mapping[str, Any]) -> Judged:
    """The options of a plugin whose settings are this table; its own code may fail in it."""
    found = attempt(lambda: _judged(declared(plugin), table))
    if isinstance(found, Problem):
        return Judged(None, None, (Flaw("", found.text),), ("",))
    return found


def declared(plugin: object) -> type | None:
    """The class of the plugin's options, None where it declares none."""
    model = getattr(plugin, DECLARED, None)
    if not isinstance(model, type):
        return None
    is_model = issubclass(model, msgspec.Struct) or dataclasses.is_dataclass(model)
    return model if is_model or _is_pydantic(model) else None


def _judged(model: type | None, table: Mapping[str, Any]) -> Judged:
    if model is None:
        return Judged(None, MappingProxyType(table), ())
    unknown = tuple(_unknown(model, table))
    known = {name: value for name, value in table.items() if name in names_of(model)}
    make = _with_pydantic if _is_pydantic(model) else _with_msgspec
    options, flaws = make(model, known)
    return Judged(model, options, (*unknown, *flaws), secret_names(model))


def names_of(model: type) -> tuple[str, ...]:
    """The names by which the options can be set."""
    if _is_pydantic(model):
        fields: Mapping[str, Any] = model.model_fields  # type: ignore[attr-defined]  # pydantic's
        return tuple(field.alias or name for name, field in fields.items())
    if issubclass(model, msgspec.Struct):
        return model.__struct_encode_fields__
    return field_names(model)


def secret_names(model: type, inside: frozenset[type] = frozenset()) -> tuple[str, ...]:
    """The options that are secret, or have a secret somewhere in them; `inside` are known."""
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
    written = dict(zip(_attributes(model), names_of(model), strict=True))
    return tuple(sorted(written[name] for name in found if name in written))


def texts_in(value: object) -> Iterator[str]:
    """The texts that an option's value has, at whatever depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for each in value.values() for text in texts_in(each))
    elif isinstance(value, list | tuple):
        yield from (text for each in value for text in texts_in(each))


def _attributes(model: type) -> tuple[str, ...]:
    if _is_pydantic(model):
        return tuple(model.model_fields)  # type: ignore[attr-defined]  # pydantic's
    return model.__struct_fields__ if issubclass(model, msgspec.Struct) else field_names(model)


def _has_secret(hint: object, inside: frozenset[type]) -> bool:
    """Whether a type is one for secrets, or has one in it."""
    if isinstance(hint, type) and hint.__name__ in ("SecretStr", "SecretBytes"):
        return True
    if any(_is_mark(each) for each in getattr(hint, "__metadata__", ())):
        return True
    if isinstance(hint, type) and not get_args(hint):
        is_model = issubclass(hint, msgspec.Struct) or dataclasses.is_dataclass(hint)
        is_new = (is_model or _is_pydantic(hint)) and hint not in inside
        return is_new and bool(secret_names(hint, inside))
    return any(_has_secret(each, inside) for each in get_args(hint))


def _is_mark(each: object) -> bool:
    return isinstance(each, msgspec.Meta) and bool((each.extra or {}).get("secret"))


def _unknown(model: type, table: Mapping[str, Any]) -> Iterator[Flaw]:
    known = names_of(model)
    for name in table:
        if name not in known:
            nearest = nearest_names(name, known, limit=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(known)}"
            yield Flaw(name, f"unknown option; {hint}")


def _is_pydantic(model: type) -> bool:
    return hasattr(model, "model_validate") and hasattr(model, "model_fields")


def _with_msgspec(model: type, table: Mapping[str, Any]) -> tuple[object, tuple[Flaw, ...]]:
    try:
        return msgspec.convert(table, model), ()
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `")
        key = path.rstrip("`").lstrip("$").lstrip(".")
        if missing := _MISSING.fullmatch(text):
            return None, (Flaw(f"{key}.{missing[1]}".lstrip("."), MISSING),)
        return None, (Flaw(key, text),)


def _with_pydantic(model: Any, table: Mapping[str, Any]) -> tuple[object, tuple[Flaw, ...]]:  # noqa: ANN401 - pydantic is not loaded here
    from pydantic import ValidationError

    try:
        return model.model_validate(table), ()
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        return None, tuple(
            Flaw(".".join(map(str, each["loc"])), str(each["msg"])) for each in found
        )
