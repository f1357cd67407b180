"""The register of one App: its plugins in order, loaded, checked and told about."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import msgspec

from pegboard.contract import hookspecs
from pegboard.contract.plugin import Answer, Origin
from pegboard.contract.tools import Tool
from pegboard.errors import NotFoundError
from pegboard.hooks.callers import Hooks
from pegboard.kit.suggestions import nearest_names
from pegboard.loading.broughthooks import BRINGING
from pegboard.loading.candidates import (
    Candidate,
    allowed,
    candidates,
    full_name,
    project_candidates,
    with_tables,
)
from pegboard.loading.discovery import marked
from pegboard.loading.handle import Belongings, Handle
from pegboard.loading.imports import Imports
from pegboard.loading.loadedplugin import Change, LoadedPlugin, tables_of_none
from pegboard.loading.registration import Problem, Registry
from pegboard.loading.toolset import Live, Offer, tools_of_file, toolset
from pegboard.paths import Places
from pegboard.providers import KeyStore
from pegboard.schema.config import Config
from pegboard.schema.event import PluginFailed
from pegboard.schema.session import Rule
from pegboard.trust.decisions import Decision
from pegboard.trust.projectcode import CodeFile


class PluginInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin as a user sees it.

    `table` is the name of its settings, `location` its file, or its import name, `distribution`
    what has installed it. `blocked` ones were not imported: `error` says by whose word. `load_ms`
    is what the import took, `quarantined` are its hooks that failed three times in a row and are
    not called any more. `options` is the class of its options, if it declares one.
    """

    name: str
    version: str
    origin: Origin
    location: str
    distribution: str = ""
    table: str = ""
    hooks: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    load_ms: float = 0.0
    error: str = ""
    blocked: bool = False
    quarantined: tuple[str, ...] = ()
    options: type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """By what plugins are loaded; `locate` says where a key of the settings stands."""

    config: Config
    env: Mapping[str, str]
    locate: Callable[[str], str]
    belongings: Belongings
    hooks: Hooks

    async def admitted(
        self,
        found: Sequence[Candidate],
        registry: Registry,
        *,
        others: Sequence[LoadedPlugin] = (),
        prefix: str = "",
    ) -> list[LoadedPlugin]:
        """What became of the candidates, beside `others`; `prefix` makes their keys new ones."""
        loaded: list[LoadedPlugin] = []
        for number, candidate in enumerate(found):
            candidate = allowed(candidate, self.config, self.env)  # noqa: PLW2901 - and who forbids it
            each = LoadedPlugin(
                key=f"{candidate.origin}:{candidate.name}:{prefix}{number}",
                candidate=candidate,
                handle=Handle(candidate.name, self.belongings),
            )
            namesakes = (other.table for other in found if other.name == candidate.name)
            with self.hooks.loading(candidate.name):
                each.load([*others, *loaded], registry)
                each.judge(self.config, self.locate, registry, tuple(namesakes))
            loaded.append(each)
            await asyncio.sleep(0)  # an import blocks, so what runs beside it gets its turn here
        return loaded


class Register:
    """The plugins of one App; made by `load_plugins`.

    `tools` are there once `collect_tools` was called.
    """

    def __init__(
        self,
        plugins: Sequence[LoadedPlugin],
        hooks: Hooks,
        problems: Sequence[Problem],
        admission: Admission,
        imports: Imports,
    ) -> None:
        self._imports = imports
        self._admission = admission
        self._reloads = 0
        self._plugins = tuple(plugins)
        self._belongings = admission.belongings
        self._problems = list(problems)
        self.hooks = hooks
        self.tools = Live[Tool]()
        self._offers: tuple[Offer, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with plugins and their tools, in the order in which it was found."""
        return tuple(self._problems)

    @property
    def secret_keys(self) -> frozenset[str]:
        """The dotted keys of the configuration whose values must not be shown.

        What a plugin that was not imported says of its options is not known: all of them.
        """
        return frozenset(
            ".".join(filter(None, ("plugins", each.candidate.table, "options", name)))
            for each in self._plugins
            for name in (("",) if each.candidate.forbidden else each.secrets)
        )

    def use(self, store: KeyStore | None) -> None:
        """Have the secrets of plugins that are kept there from here on."""
        self._belongings.store = store

    def secrets(self) -> tuple[str, ...]:
        """The secrets of plugins: those of the environment, those kept, and secret options."""
        return self._belongings.values

    @property
    def infos(self) -> tuple[PluginInfo, ...]:
        """All plugins that were found, oldest first, with those that were not loaded."""
        return tuple(self._info(each) for each in self._plugins)

    def absent(self, spec: Callable[..., object]) -> str:
        """The plugins that are not loaded and whose module names the hook, each with why."""
        from pegboard.loading.absent import names_hook  # nobody else pays for it

        return "".join(
            f"; {each.candidate.name} is not loaded: {each.error}"
            for each in self._plugins
            if each.plugin is None and names_hook(each.candidate, self._imports, spec)
        )

    async def collect_tools(self, config: Config) -> Mapping[str, Tool]:
        """The tools of all plugins and tool files by id; problems with them are added."""
        self._take(await self._offered(self.hooks, self._plugins, config))
        return self.tools

    async def _offered(
        self, hooks: Hooks, plugins: Sequence[LoadedPlugin], config: Config
    ) -> list[Offer]:
        """What these plugins register by these hooks, and what their files have."""
        answers = await hooks.collect(hookspecs.register_tools, config=config, hooks=self.hooks)
        offers = [
            Offer(
                plugin=answer.plugin,
                origin=answer.origin,
                tool=answer.value,
                place=f"the plugin {answer.plugin}",
                key=answer.key,
            )
            for answer in answers
        ]
        for each in plugins:
            offers.extend(msgspec.structs.replace(offer, key=each.key) for offer in each.offers)
        return offers

    def replace_tools(self, plugin: str, tools: Sequence[Tool]) -> tuple[str, ...]:
        """Have these as the plugin's tools from here on; what is wrong with them, a line each.

        They pass the checks of tools that a plugin registers.

        :raises NotFoundError: when no plugin of this name is loaded.
        """
        loaded = [each for each in self._plugins if each.plugin is not None]
        names = {name: each for each in loaded for name in (full_name(each.candidate),)}
        names |= {each.candidate.name: each for each in reversed(loaded)}
        if plugin not in names:
            raise NotFoundError("plugin", plugin, suggestions=nearest_names(plugin, names))
        each = names[plugin]
        origin, name = each.candidate.origin, each.candidate.name
        place = f"the plugin {name}"
        before = len(self._problems)
        self._take(
            [
                *(offer for offer in self._offers if offer.key != each.key),
                *(
                    Offer(plugin=name, origin=origin, tool=tool, place=place, key=each.key)
                    for tool in tools
                ),
            ]
        )
        return tuple(each.text for each in self._problems[before:])

    async def reload(self, decision: Decision, config: Config) -> Change:
        """Have the hooks and tools of the project's files as the decision has them.

        Calls that are under way go on with what was there.

        :raises RequiredHookError: when a hook that must not be left out cannot be called; then
            everything stays as it is.
        """
        self._reloads += 1
        others = [each for each in self._plugins if each.candidate.origin != "project"]
        old = [each for each in self._plugins if each.candidate.origin == "project"]
        imports, registry = Imports(), Registry(self._admission.config)
        known = {each.candidate.location for each in others}
        builtin = {each.candidate.name for each in others if each.candidate.origin == "builtin"}
        found = with_tables(project_candidates(decision, imports), self._admission.config, builtin)
        found = [each for each in found if each.location not in known]
        new = await self._admission.admitted(
            found, registry, others=others, prefix=f"{self._reloads}."
        )
        place = sum(each.candidate.origin != "embedded" for each in others)
        plugins = (*others[:place], *new, *others[place:])
        _enroll(plugins, registry, imports, self.hooks)
        implementations = registry.implementations()
        names = {each.candidate.name for each in (*old, *new)}
        fresh = [each for each in registry.problems if each.plugin in names]
        self._problems = [*(each for each in self._problems if each.plugin not in names), *fresh]
        self._plugins = plugins
        self.hooks.replace(implementations)
        offers = await self._offered(self.hooks.only({each.key for each in new}), new, config)
        gone = {each.key for each in old}
        self._take([*(each for each in self._offers if each.key not in gone), *offers])
        self._imports.forget(file for each in old if (file := each.candidate.file))
        texts = tuple(each.text for each in self._problems if each.plugin in names)
        return Change(tuple(each.seen for each in old), tuple(each.seen for each in new), texts)

    def _take(self, offers: Sequence[Offer]) -> None:
        self._offers = tuple(offers)
        chosen = toolset(offers)
        self._problems.extend(each for each in chosen.problems if each not in self._problems)
        for each in self._plugins:
            each.tools.clear()
        known = {each.key: each for each in self._plugins}
        for name, offer in chosen.offers.items():
            known[offer.key].tools.append(name)
        owners = {name: known[offer.key].handle for name, offer in chosen.offers.items()}
        self.hooks.set_owners(owners)
        self.tools.take({name: offer.tool for name, offer in chosen.offers.items()})

    async def with_permissions(self, config: Config, written: Sequence[Rule]) -> Config:
        """The configuration with the plugins' rules before those that the user has `written`."""
        spec = hookspecs.register_permissions
        answers = [*await self.hooks.collect(spec), *self._cautions(self.hooks.failed(spec))]
        if not answers:
            return config
        from pegboard.loading.defaults import with_defaults  # few plugins have rules of their own

        names = {tool.permission: self.hooks.owner(name).name for name, tool in self.tools.items()}
        config, problems = with_defaults(config, written, answers, names)
        self._problems.extend(each for each in problems if each not in self._problems)
        return config

    def _cautions(self, failed: Sequence[str]) -> Iterator[Answer[Rule]]:
        """For the tools of plugins whose own rules are not known: that they are asked about."""
        if not failed:
            return
        from pegboard.loading.defaults import RESERVED

        for each in self._plugins:
            names = {self.tools[name].permission for name in each.tools if each.key in failed}
            for name in sorted(names - RESERVED):
                rule = Rule(permission=name, pattern="*", action="ask")
                yield Answer(each.candidate.name, each.candidate.origin, rule, each.key)

    async def aclose(self) -> None:
        """End what plugins still do and let go of modules that were made from files."""
        await self.hooks.aclose()
        await self._belongings.aclose()
        self._imports.close()

    def _info(self, each: LoadedPlugin) -> PluginInfo:
        return PluginInfo(
            name=each.candidate.name,
            version=each.candidate.version,
            origin=each.candidate.origin,
            location=each.candidate.location,
            distribution=each.candidate.distribution,
            table=each.candidate.table,
            hooks=each.hooks,
            tools=tuple(each.tools),
            load_ms=each.load_ms,
            error=each.error,
            blocked=bool(each.candidate.forbidden),
            quarantined=self.hooks.quarantined(each.key),
            options=each.model,
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
    places: Places | None = None,
    locate: Callable[[str], str] = lambda key: key,
    fitting: Callable[[Candidate, Imports], bool] = lambda *_: True,
    on_failure: Callable[[PluginFailed], None],
) -> Register:
    """The register: built-in, installed, the user's, the project's, then the `extra` plugins.

    A plugin that cannot be imported is told about in `problems` and takes no other along. The
    project's code is run only if the decision says so, and then the very bytes that it holds.
    `locate` says where a dotted key of the configuration stands. Candidates that
    are not `fitting` are left out.
    """
    found, imports = candidates(
        directory=directory,
        config_dir=config_dir,
        config=config,
        decision=decision,
        extra=extra,
        builtins=builtins,
        installed=installed,
        fitting=fitting,
    )
    registry = Registry(config)
    registry.problems += tables_of_none(config, found, locate)
    belongings = Belongings(places or Places.of(env), env)
    hooks = Hooks({}, on_failure=on_failure)
    admission = Admission(config=config, env=env, locate=locate, belongings=belongings, hooks=hooks)
    loaded = await admission.admitted(found, registry)
    _enroll(loaded, registry, imports, hooks)
    hooks.replace(registry.implementations())
    return Register(loaded, hooks, registry.problems, admission, imports)


def _enroll(
    plugins: Sequence[LoadedPlugin], registry: Registry, imports: Imports, hooks: Hooks
) -> None:
    """Register what they have, once all have brought their own hooks."""
    for each in plugins:
        if each.plugin is not None:
            with hooks.loading(each.candidate.name, f"hook {BRINGING}"):
                registry.bring(each.registrant)
    for each in plugins:
        if each.plugin is not None:
            _register(each, registry)
        elif not (each.candidate.forbidden or each.is_double):
            _stand_in(each, registry, imports)


def _register(loaded: LoadedPlugin, registry: Registry) -> None:
    loaded.hooks = registry.add(loaded.registrant)
    file = loaded.candidate.file
    if file is not None and isinstance(loaded.plugin, ModuleType):
        _take_tools(loaded, file, loaded.plugin, registry)


def _stand_in(loaded: LoadedPlugin, registry: Registry, imports: Imports) -> None:
    """Have the plugin, which could not be loaded, refuse what it would have guarded."""
    from pegboard.loading.absent import hooks_of_source  # nobody else pays for it

    if functions := dict(marked(loaded.unfit)):
        registry.stand_in(loaded.registrant, functions, loaded.error)
        return
    absent = hooks_of_source(loaded.candidate, imports)
    registry.stand_in(loaded.registrant, absent.functions, loaded.error, known=absent.known)


def _take_tools(
    loaded: LoadedPlugin, file: CodeFile, module: ModuleType, registry: Registry
) -> None:
    if file.kind == "tool":
        loaded.offers, problems = tools_of_file(file, module, loaded.candidate.origin)
        registry.problems.extend(problems)
