"""The register of one App: its plugins in order, loaded, checked and told about."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from types import ModuleType

import msgspec
from msgspec.structs import replace

from pegboard.contract import hookspecs
from pegboard.contract.marks import Origin
from pegboard.contract.tools import Tool
from pegboard.hooks.callers import Hooks
from pegboard.hooks.printing import PRINTING
from pegboard.loading.discovery import (
    LoadFailure,
    entry_points,
    forget,
    load_entry_point,
    load_file,
    load_module,
)
from pegboard.loading.registration import Problem, Registrant, Registry
from pegboard.loading.toolset import ORIGINS, Offer, tools_of_file, toolset
from pegboard.schema.config import Config
from pegboard.schema.event import PluginFailed
from pegboard.trust.decisions import Decision
from pegboard.trust.projectcode import CodeFile, plugin_files, user_code

DISABLING = "PEGBOARD_DISABLE_PLUGINS"
"""The variable with the names of plugins that are not loaded, between commas."""
_OWN = "pegboard"
_INSTALLED = ("site-packages", "dist-packages")
"""The names of folders into which programs install distributions."""


class PluginInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin as a user sees it.

    `location` is its file, or its import name. `blocked` ones were not imported: `error` says
    by whose word. `load_ms` is what the import took, `quarantined` are its hooks that failed three
    times in a row and are not called any more.
    """

    name: str
    version: str
    origin: Origin
    location: str
    hooks: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    load_ms: float = 0.0
    error: str = ""
    blocked: bool = False
    quarantined: tuple[str, ...] = ()


class _Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin before it is imported; `file` is the file that it is made from, if any."""

    name: str
    origin: Origin
    location: str
    load: Callable[[], object]
    version: str = ""
    file: CodeFile | None = None
    forbidden: str = ""


@dataclass(slots=True, kw_only=True)
class _Loaded:
    """What became of a candidate."""

    key: str
    candidate: _Candidate
    plugin: object = None
    hooks: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    load_ms: float = 0.0
    error: str = ""
    tools: list[str] = field(default_factory=list)

    @property
    def registrant(self) -> Registrant:
        """What the registry is told of it."""
        named = self.candidate
        return Registrant(key=self.key, name=named.name, origin=named.origin, plugin=self.plugin)


class Register:
    """The plugins of one App; made by `load_plugins`.

    `tools` are there once `collect_tools` was called.
    """

    def __init__(
        self, plugins: Sequence[_Loaded], hooks: Hooks, problems: Sequence[Problem]
    ) -> None:
        self._plugins = tuple(plugins)
        self._problems = list(problems)
        self.hooks = hooks
        self.tools: Mapping[str, Tool] = {}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with plugins and their tools, in the order in which it was found."""
        return tuple(self._problems)

    @property
    def infos(self) -> tuple[PluginInfo, ...]:
        """All plugins that were found, oldest first, with those that were not loaded."""
        return tuple(self._info(each) for each in self._plugins)

    async def collect_tools(self, config: Config) -> Mapping[str, Tool]:
        """The tools of all plugins and tool files by id; problems with them are added."""
        answers = await self.hooks.collect(
            hookspecs.register_tools, config=config, hooks=self.hooks
        )
        offers = [
            Offer(
                plugin=answer.plugin,
                origin=answer.origin,
                tool=answer.value,
                place=f"the plugin {answer.plugin}",
            )
            for answer in answers
        ]
        offers.extend(offer for each in self._plugins for offer in each.offers)
        chosen = toolset(offers)
        self._problems.extend(chosen.problems)
        for each in self._plugins:
            each.tools.clear()
        for name, offer in chosen.offers.items():
            for each in self._plugins:
                if (each.candidate.name, each.candidate.origin) == (offer.plugin, offer.origin):
                    each.tools.append(name)
        self.hooks.set_owners({name: offer.plugin for name, offer in chosen.offers.items()})
        self.tools = {name: offer.tool for name, offer in chosen.offers.items()}
        return self.tools

    async def aclose(self) -> None:
        """End what plugins still do and let go of modules that were made from files."""
        await self.hooks.aclose()
        for each in self._plugins:
            if each.candidate.file is not None:
                forget(each.plugin)

    def _info(self, each: _Loaded) -> PluginInfo:
        return PluginInfo(
            name=each.candidate.name,
            version=each.candidate.version,
            origin=each.candidate.origin,
            location=each.candidate.location,
            hooks=each.hooks,
            tools=tuple(each.tools),
            load_ms=each.load_ms,
            error=each.error,
            blocked=bool(each.candidate.forbidden),
            quarantined=self.hooks.quarantined(each.key),
        )


async def load_plugins(  # noqa: PLR0913 - where plugins come from, all keyword-only
    *,
    directory: Path,
    config_dir: Path,
    config: Config,
    env: Mapping[str, str],
    decision: Decision,
    extra: Sequence[object] = (),
    builtins: bool = True,
    installed: bool = True,
    on_failure: Callable[[PluginFailed], None],
) -> Register:
    """The register: built-in, installed, the user's, the project's, then the `extra` plugins.

    A plugin that cannot be imported is told about in `problems` and takes no other along. The
    project's code is run only if the decision says so, and then the very bytes that it holds.
    """
    candidates = [
        *_from_distributions(decision.root, builtins=builtins, installed=installed),
        *_from_files(directory, config_dir, config, decision),
        *(_embedded(plugin) for plugin in extra),
    ]
    candidates.sort(key=lambda each: ORIGINS.index(each.origin))
    registry = Registry(config)
    loaded: list[_Loaded] = []
    for number, candidate in enumerate(candidates):
        key = f"{candidate.origin}:{candidate.name}:{number}"
        loaded.append(_load(key, _allowed(candidate, config, env), loaded, registry))
        await asyncio.sleep(0)  # an import blocks, so what runs beside it gets its turn here
    usable = [each for each in loaded if each.plugin is not None]
    for each in usable:
        registry.bring(each.registrant)
    for each in usable:
        _register(each, registry)
    hooks = Hooks(registry.implementations(), on_failure=on_failure, trace=config.trace)
    return Register(loaded, hooks, registry.problems)


def _from_distributions(root: Path, *, builtins: bool, installed: bool) -> Iterator[_Candidate]:
    brought = cache(partial(_brought, root))
    for entry in entry_points():
        own = entry.distribution == _OWN
        if builtins if own else installed:
            yield _Candidate(
                name=entry.name,
                origin="builtin" if own else "installed",
                location=entry.value,
                version=entry.version,
                load=partial(load_entry_point, entry),
                forbidden=brought(entry.folder),
            )


def _brought(root: Path, place: str) -> str:
    """Why a plugin is not run that only stands in a folder of the project, as in a notebook's.

    What says to be one of our own is told from it by the folder that we run from.
    """
    folder, ours = Path(place or ".").resolve(), Path(__file__).resolve().parent.parent.parent
    if folder.name in _INSTALLED or folder == ours or not folder.is_relative_to(root):
        return ""
    return f"not run: {folder} is a folder of the project; install what is in it"


def _from_files(
    directory: Path, config_dir: Path, config: Config, decision: Decision
) -> Iterator[_Candidate]:
    """The user's files, those that the configuration names, and the project's.

    A file outside of the project that both name is the user's.
    """
    forbidden = "" if decision.trusted else f"not run: {decision.reason}"
    users = [_from_file(file, "user") for file in user_code(config_dir)]
    for entry in config.plugin_paths:
        users += _from_path(directory / entry, decision)
    yield from users
    known = {candidate.location for candidate in users}
    for file in decision.code:
        if str(file.path) not in known:
            yield _from_file(file, "project", forbidden=forbidden)


def _from_path(path: Path, decision: Decision) -> Iterator[_Candidate]:
    """The plugins of an entry of `plugin_paths`; the project's own are the decision's affair.

    Of what the project names no file is looked at again: one may have come since the decision.
    """
    name = path.name
    if path in decision.named:
        if not any(path in (file.path, file.path.parent) for file in decision.code):
            missing = CodeFile(path=path, kind="plugin", name=name, error="there is none")
            yield _from_file(missing, "project")
    elif _is_module_name(path):
        yield _Candidate(name=name, origin="user", location=name, load=partial(load_module, name))
    else:
        for file in plugin_files(path):
            if file.path not in decision.files or not file.path.is_relative_to(decision.root):
                yield _from_file(file, "user")


def _is_module_name(path: Path) -> bool:
    is_dotted = path.suffix != ".py" and path.name.replace(".", "_").isidentifier()
    return is_dotted and not os.path.exists(path)  # noqa: PTH110 - no error for a name too long


def _from_file(file: CodeFile, origin: Origin, *, forbidden: str = "") -> _Candidate:
    return _Candidate(
        name=file.name,
        origin=origin,
        location=str(file.path),
        load=partial(load_file, file),
        file=file,
        forbidden=forbidden,
    )


def _embedded(plugin: object) -> _Candidate:
    named = getattr(plugin, "__name__", None)
    name = named if isinstance(named, str) else type(plugin).__name__
    return _Candidate(name=name, origin="embedded", location="", load=lambda: plugin)


def _allowed(candidate: _Candidate, config: Config, env: Mapping[str, str]) -> _Candidate:
    """The candidate, forbidden if the user has switched it off."""
    said = config.plugins.get(candidate.name)
    disabled = {name.strip() for name in env.get(DISABLING, "").split(",")}
    reason = candidate.forbidden
    if said is not None and not said.enabled:
        reason = f"switched off by plugins.{candidate.name}.enabled in the configuration"
    elif candidate.name in disabled:
        reason = f"switched off by {DISABLING}"
    return replace(candidate, forbidden=reason)


def _load(
    key: str, candidate: _Candidate, others: Sequence[_Loaded], registry: Registry
) -> _Loaded:
    """The candidate, imported unless it may not be or cannot be."""
    loaded = _Loaded(key=key, candidate=candidate, error=candidate.forbidden)
    if candidate.forbidden:
        return loaded
    started = perf_counter()
    printing = PRINTING.set(candidate.name)
    plugin = candidate.load()
    PRINTING.reset(printing)
    loaded.load_ms = (perf_counter() - started) * 1000
    if isinstance(plugin, LoadFailure):
        return _failed(loaded, plugin, registry)
    same = next((each for each in others if each.plugin is plugin), None)
    if same is not None:
        text = f"it is the very object that is loaded as {same.candidate.name} already"
        return _failed(loaded, LoadFailure(kind="clash", text=text, traceback=""), registry)
    loaded.plugin = plugin
    return loaded


def _register(loaded: _Loaded, registry: Registry) -> None:
    loaded.hooks = registry.add(loaded.registrant)
    file = loaded.candidate.file
    if file is not None and isinstance(loaded.plugin, ModuleType):
        _take_tools(loaded, file, loaded.plugin, registry)


def _failed(loaded: _Loaded, failure: LoadFailure, registry: Registry) -> _Loaded:
    loaded.error = failure.text
    registry.problems.append(
        Problem(
            kind=failure.kind,
            plugin=loaded.candidate.name,
            text=failure.text,
            detail=failure.traceback,
        )
    )
    return loaded


def _take_tools(loaded: _Loaded, file: CodeFile, module: ModuleType, registry: Registry) -> None:
    if file.kind == "tool":
        loaded.offers, problems = tools_of_file(file, module, loaded.candidate.origin)
        registry.problems.extend(problems)
