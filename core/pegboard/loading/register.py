"""The register of one App's plugins: it loads, orders, checks and lists them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from pegboard.contract import apphooks
from pegboard.contract.plugin import Answer, Origin
from pegboard.contract.tools import Tool
from pegboard.errors import NotFoundError
from pegboard.hooks.callers import Hooks
from pegboard.kit.suggestions import nearest_names
from pegboard.loading.candidates import Sources
from pegboard.loading.discovery import PluginProblem, marked
from pegboard.loading.imports import Imports
from pegboard.loading.registrant import Belongings, Registrant
from pegboard.loading.registration import BRINGING, Registry
from pegboard.loading.toolset import ORIGINS, Offer, bare_tools, emptiness, toolset
from pegboard.schema.config import Config
from pegboard.schema.session import EDIT, READ, Rule
from pegboard.trust.decisions import Decision


class PluginChange(NamedTuple):
    """The project's plugins before and after a reload, and the problems of the new plugins."""

    old: tuple[Registrant, ...]
    new: tuple[Registrant, ...]
    problems: tuple[str, ...]


class PluginInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The description of one plugin, as lists of plugins show it to users.

    `table` is the name of the plugin's settings. `location` is its file or import name.
    `distribution` is the package that installed it. A `blocked` plugin was not imported, and
    `error` names the reason. `load_ms` is the duration of the import. `quarantined` are hooks that
    are no longer called after three failures in a row. `options` is the class of the plugin's
    options, None if it declares none. `switch` maps each tool that is off by default to the dotted
    key of the setting that enables it.
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
    switch: Mapping[str, str] = {}


_STAYS = "what was loaded before stays in force"
RESERVED = frozenset({EDIT, READ, "external_directory", "doom_loop"})
"""The permissions for which a plugin may have no rules."""


class Register:
    """The register of an App's plugins: `load` imports them, and `collect_tools` sets `tools`."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.belongings = Belongings(sources.places, sources.env)
        self._plugins: tuple[Registrant, ...] = ()
        self._numbers = count()
        self._imports: list[Imports] = []
        self._problems: list[PluginProblem] = []
        self.hooks = Hooks({}, on_failure=sources.on_failure)
        self.tools: Mapping[str, Tool] = {}
        self._offers: tuple[Offer, ...] = ()

    @property
    def problems(self) -> tuple[PluginProblem, ...]:
        """The problems with plugins and their tools, in the order of their discovery."""
        return tuple(self._problems)

    @property
    def secret_keys(self) -> frozenset[str]:
        """The dotted keys of the configuration whose values are secret.

        For a plugin that was not imported, all options count as secret, because its options are
        unknown.
        """
        return frozenset(
            ".".join(filter(None, ("plugins", each.table, "options", name)))
            for each in self._plugins
            for name in each.secrets
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all plugins, oldest plugin first."""
        return tuple(each.key for each in self._plugins)

    @property
    def infos(self) -> tuple[PluginInfo, ...]:
        """The descriptions of all plugins that were found, oldest first, loaded or not."""
        return tuple(self._info(each) for each in self._plugins)

    def absent(self, spec: Callable[..., object]) -> str:
        """Return, as text, the plugins that name the hook but are not loaded, and the reasons."""
        from pegboard.loading.absent import names_hook  # nobody else pays for it

        return "".join(
            f"; {each.name} is not loaded: {each.error}"
            for each in self._plugins
            if each.plugin is None and names_hook(each, spec)
        )

    async def load(self) -> None:
        """Load the plugins: built-in, installed, the user's, the project's, then the `extra` ones.

        Call it once, before all other methods. A plugin that cannot be imported becomes an entry in
        `problems` and does not affect other plugins. The project's code runs only if the decision
        allows it, and from the content that the decision recorded.
        """
        imports = Imports()
        found = self._sources.candidates(imports)
        self._problems += self._sources.tables_of_none(found)
        await self._admit(found, imports, ())

    def find(self) -> tuple[PluginInfo, ...]:
        """Return the plugins that `load` would import, oldest first, without importing any.

        The hooks, tools and options of these plugins are unknown.
        """
        found = self._sources.candidates(Imports())
        return tuple(replace(self._info(each), error=each.forbidden) for each in found)

    async def reload(self, decision: Decision, config: Config) -> PluginChange:
        """Load the hooks and tools of the project's files again, if the trust decision allows it.

        Running calls finish with the old plugins. If a file can no longer be imported, its old
        plugin stays.

        :raises RequiredHookError: when a required hook cannot be called; the register is then
          unchanged.
        """
        imports = Imports()
        others = [each for each in self._plugins if each.origin != "project"]
        before = [each for each in self._plugins if each.origin == "project"]
        found = self._sources.project(decision, imports, others)
        await self._admit(found, imports, others, before)
        old = tuple(each for each in before if each not in self._plugins)
        new = tuple(each for each in found if each in self._plugins)
        offers = await self._offered(self.hooks.only({each.key for each in new}), new, config)
        self._take([*(each for each in self._offers if each.by not in old), *offers])
        for known in self._imports[:-1]:
            known.forget(file for each in old if (file := each.file))
        names = {each.name for each in (*before, *new)}
        return PluginChange(
            old, new, tuple(each.named for each in self._problems if each.plugin in names)
        )

    async def _admit(
        self,
        found: Sequence[Registrant],
        imports: Imports,
        others: Sequence[Registrant],
        before: Sequence[Registrant] = (),
    ) -> None:
        """Import and register the plugins in `found`; the plugins in `others` stay loaded.

        If a plugin cannot be imported, its predecessor in `before` stays loaded.
        """
        self._imports.append(imports)
        registry = Registry(self._sources.config)
        plugins = sorted((*others, *found), key=lambda each: ORIGINS.index(each.origin))
        loaded = list(others)
        for each in [each for each in plugins if each not in others]:
            each.key = f"{each.origin}:{each.name}:{next(self._numbers)}"
            namesakes = [other.table for other in found if other.name == each.name]
            with self.hooks.loading(each.name):
                problem = each.enter(loaded)
                if problem is not None and (stays := _predecessor(each, before)):
                    problem = replace(problem, text=f"{problem.text}; {_STAYS}")
                    plugins[plugins.index(each)] = stays
                else:
                    stays = each
                    registry.problems += each.judge(
                        self._sources.config, self._sources.locate, self.belongings, namesakes
                    )
                registry.problems += filter(None, (problem,))
            loaded.append(stays)
            await asyncio.sleep(0)  # an import blocks, so what runs beside it gets its turn here
        _enroll(plugins, registry, imports, self.hooks)
        implementations = registry.implementations()
        names = {each.name for each in {*self._plugins, *found} - {*others}}
        kept = (each for each in self._problems if each.plugin not in names)
        self._problems = [*kept, *(each for each in registry.problems if each.plugin in names)]
        self._plugins = tuple(plugins)
        self.hooks.replace(implementations)

    async def collect_tools(self, config: Config) -> Mapping[str, Tool]:
        """Collect the tools of all plugins and tool files, by id, and record problems with them."""
        self._take(await self._offered(self.hooks, self._plugins, config))
        return self.tools

    async def _offered(
        self, hooks: Hooks, plugins: Sequence[Registrant], config: Config
    ) -> list[Offer]:
        """Return the tools that the plugins register through `hooks`, and those in their files."""
        answers = await hooks.collect(apphooks.register_tools, config=config, hooks=self.hooks)
        known = {each.key: each for each in plugins}
        offers = [_offer(known[answer.key], answer.value) for answer in answers]
        for each in plugins:
            for found in bare_tools(each):
                if isinstance(found, PluginProblem):
                    self._problems.append(found)
                else:
                    offers.append(found)
        return offers

    def replace_tools(self, plugin: str, tools: Sequence[Tool]) -> tuple[str, ...]:
        """Replace a plugin's tools from the next turn on; return the new tools' problems as lines.

        The new tools pass the same checks as tools that a plugin registers.

        :raises NotFoundError: when no plugin of this name is loaded.
        """
        by = self.loaded(plugin)
        before = len(self._problems)
        others = (each for each in self._offers if each.by is not by)
        self._take([*others, *(_offer(by, tool) for tool in tools)])
        return tuple(each.text for each in self._problems[before:])

    def loaded(self, plugin: str) -> Registrant:
        """Return the plugin with this name, or full name, that is loaded.

        :raises NotFoundError: when none is loaded.
        """
        loaded = [each for each in self._plugins if each.plugin is not None]
        names = {each.full_name: each for each in loaded}
        names |= {each.name: each for each in reversed(loaded)}
        if plugin not in names:
            raise NotFoundError("plugin", plugin, suggestions=nearest_names(plugin, names))
        return names[plugin]

    def _take(self, offers: Sequence[Offer]) -> None:
        self._offers = tuple(offers)
        chosen, problems = toolset(offers)
        for problem in problems:
            self._note(problem)
        for each in self._plugins:
            each.tools = ()
        for name, offer in chosen.items():
            offer.by.tools += (name,)
        owners = {name: offer.by.handle for name, offer in chosen.items()}
        self.hooks.owners = {name: each for name, each in owners.items() if each is not None}
        self.hooks.sources = {
            name: offer.tool.source or offer.by.name
            for name, offer in chosen.items()
            if offer.by.origin != "builtin"
        }
        self.tools = {name: offer.tool for name, offer in chosen.items()}
        self.hooks.switches = {
            name: key for each in self._plugins for name, key in each.switch.items()
        }

    def _note(self, problem: PluginProblem) -> None:
        if problem not in self._problems:
            self._problems.append(problem)

    async def with_permissions(self, config: Config, written: Sequence[Rule]) -> Config:
        """Return the configuration with the plugins' rules before the user's `written` rules.

        A rule that a plugin may not set is left out and recorded as a problem.
        """
        spec = apphooks.register_permissions
        answers = [*await self.hooks.collect(spec), *self._cautions(self.hooks.failed(spec))]
        owners = {
            tool.permission: self.hooks.owners[name].name for name, tool in self.tools.items()
        }
        fitting: list[Rule] = []
        for answer in answers:
            if flaw := _flaw(answer, owners.get(answer.value.permission, answer.plugin)):
                self._note(PluginProblem("name", answer.plugin, flaw))
            else:
                fitting.append(replace(answer.value, by=f"plugin {answer.plugin}"))
        rules = config.permission
        first = len(rules) - len(written)
        end = first if rules[first:] == tuple(written) else 0
        return replace(config, permission=(*rules[:end], *fitting, *rules[end:]))

    def _cautions(self, failed: Sequence[str]) -> Iterator[Answer[Rule]]:
        """Yield a rule with the action ask for each tool of a plugin with a key in `failed`.

        The hook of these plugins that registers rules has failed, so their rules are unknown.
        """
        for each in self._plugins:
            names = {self.tools[name].permission for name in each.tools if each.key in failed}
            for name in sorted(names - RESERVED):
                rule = Rule(permission=name, pattern="*", action="ask")
                yield Answer(each.name, each.origin, rule, each.key)

    async def aclose(self) -> None:
        """End the work of plugins and remove the modules that were made from plugin files."""
        await self.hooks.aclose()
        await self.belongings.aclose()
        for each in self._imports:
            each.close()

    def _info(self, each: Registrant) -> PluginInfo:
        facts: dict[str, Any] = {
            name: getattr(each, name, None) for name in PluginInfo.__struct_fields__
        }
        quarantined = self.hooks.quarantined(each.key)
        return PluginInfo(**facts | {"blocked": bool(each.forbidden), "quarantined": quarantined})


def _predecessor(each: Registrant, before: Sequence[Registrant]) -> Registrant | None:
    """Return the plugin from `before` that was loaded from the same file, or None."""
    same = (old for old in before if (old.name, old.location) == (each.name, each.location))
    return next((old for old in same if old.plugin is not None), None)


def _offer(by: Registrant, tool: Tool) -> Offer:
    return Offer(by=by, tool=tool, place=f"the plugin {by.name}")


def _enroll(
    plugins: Sequence[Registrant], registry: Registry, imports: Imports, hooks: Hooks
) -> None:
    """Register the plugins' implementations, after the hooks that the plugins specify."""
    for each in plugins:
        if each.plugin is not None:
            with hooks.loading(each.name, f"hook {BRINGING}"):
                registry.bring(each)
    for each in plugins:
        if each.plugin is not None:
            each.hooks = registry.add(each)
            registry.problems += filter(None, (emptiness(each),))
        elif not (each.forbidden or each.is_double):
            _stand_in(each, registry, imports)


def _stand_in(each: Registrant, registry: Registry, imports: Imports) -> None:
    """Refuse the operations that an unloaded plugin would guard, such as permission requests.

    Its hooks are read from the imported object if there is one, or else from its source.
    """
    from pegboard.loading.absent import hooks_of_source  # nobody else pays for it

    if functions := dict(marked(each.unfit)):
        registry.stand_in(each, functions, each.error)
        return
    functions, known = hooks_of_source(each, imports)
    registry.stand_in(each, functions, each.error, known=known)


def _flaw(answer: Answer[Rule], owner: str) -> str:
    """Return why a plugin may not set this rule, or ""; `owner` is the plugin of its tool."""
    name = answer.value.permission
    text = f"its rule about the permission {name} is left out"
    if set("*?") & set(name):
        return f"{text}: it is about more than one"
    if name in RESERVED or owner != answer.plugin:
        whose = f"the plugin {owner}" if owner != answer.plugin else "Pegboard"
        return f"{text}: that is {whose}'s own"
    return ""
