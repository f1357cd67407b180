"""The register of one App: its plugins in order, loaded, checked and reported."""

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
    """The project's plugins before and after a reload, and the problems of the new ones."""

    old: tuple[Registrant, ...]
    new: tuple[Registrant, ...]
    problems: tuple[str, ...]


class PluginInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin as a user sees it in lists.

    `table` is the name of its settings, `location` its file, or its import name, `distribution`
    what has installed it. `blocked` ones were not imported: `error` says by whose word. `load_ms`
    is what the import took, `quarantined` are its hooks that failed three times in a row and are
    not called any more. `options` is the class of its options, if it declares one. `switch` has,
    for each tool that is off until the user has a setting, the dotted key of that setting.
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
    """The plugins of one App: `load` imports them, `collect_tools` fills `tools`."""

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
        """The faults of plugins and their tools, in the order of their discovery."""
        return tuple(self._problems)

    @property
    def secret_keys(self) -> frozenset[str]:
        """The dotted keys of the configuration whose values must not be shown.

        What a plugin that was not imported says of its options is not known: all of them.
        """
        return frozenset(
            ".".join(filter(None, ("plugins", each.table, "options", name)))
            for each in self._plugins
            for name in each.secrets
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the plugins, oldest first."""
        return tuple(each.key for each in self._plugins)

    @property
    def infos(self) -> tuple[PluginInfo, ...]:
        """All plugins that were found, oldest first, with those that were not loaded."""
        return tuple(self._info(each) for each in self._plugins)

    def absent(self, spec: Callable[..., object]) -> str:
        """List the plugins that are not loaded but whose module names the hook, with reasons."""
        from pegboard.loading.absent import names_hook  # nobody else pays for it

        return "".join(
            f"; {each.name} is not loaded: {each.error}"
            for each in self._plugins
            if each.plugin is None and names_hook(each, spec)
        )

    async def load(self) -> None:
        """Load the plugins: built-in, installed, the user's, the project's, then the `extra` ones.

        Called once, before all else. One that cannot be imported is told about in `problems` and
        takes no other along. The project's code is run only if the decision says so, and then the
        very bytes that it holds.
        """
        imports = Imports()
        found = self._sources.candidates(imports)
        self._problems += self._sources.tables_of_none(found)
        await self._admit(found, imports, ())

    def find(self) -> tuple[PluginInfo, ...]:
        """Return the plugins that `load` would import, oldest first, without importing any.

        Their hooks, tools and options are not known.
        """
        found = self._sources.candidates(Imports())
        return tuple(replace(self._info(each), error=each.forbidden) for each in found)

    async def reload(self, decision: Decision, config: Config) -> PluginChange:
        """Load the hooks and tools of the project's files that the decision allows.

        Calls that are under way go on with what was there. Of a file that cannot be imported as it
        is now, what was loaded before stays in force.

        :raises RequiredHookError: when a hook that must not be left out cannot be called; then
            everything stays as it is.
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
        """Import and register the found plugins, and keep the loaded `others`.

        Those of `before` replace their successors that cannot be imported.
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
        """Collect the tools of all plugins and tool files by id, and record problems with them."""
        self._take(await self._offered(self.hooks, self._plugins, config))
        return self.tools

    async def _offered(
        self, hooks: Hooks, plugins: Sequence[Registrant], config: Config
    ) -> list[Offer]:
        """Return the tools that these plugins register by these hooks, and those in their files."""
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
        """Replace the plugin's tools from now on; return the problems, a line each.

        They pass the checks of tools that a plugin registers.

        :raises NotFoundError: when no plugin of this name is loaded.
        """
        by = self.loaded(plugin)
        before = len(self._problems)
        others = (each for each in self._offers if each.by is not by)
        self._take([*others, *(_offer(by, tool) for tool in tools)])
        return tuple(each.text for each in self._problems[before:])

    def loaded(self, plugin: str) -> Registrant:
        """Return the plugin of this name.

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
        """Put the plugins' rules before those that the user has `written`.

        A rule that a plugin may not set is left out, with a problem.
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
        """Yield rules that ask for the tools of failed plugins, whose own rules are unknown."""
        for each in self._plugins:
            names = {self.tools[name].permission for name in each.tools if each.key in failed}
            for name in sorted(names - RESERVED):
                rule = Rule(permission=name, pattern="*", action="ask")
                yield Answer(each.name, each.origin, rule, each.key)

    async def aclose(self) -> None:
        """End the work of plugins and release the modules that were made from files."""
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
    """Return the loaded plugin that was made from the same file before, if any."""
    same = (old for old in before if (old.name, old.location) == (each.name, each.location))
    return next((old for old in same if old.plugin is not None), None)


def _offer(by: Registrant, tool: Tool) -> Offer:
    return Offer(by=by, tool=tool, place=f"the plugin {by.name}")


def _enroll(
    plugins: Sequence[Registrant], registry: Registry, imports: Imports, hooks: Hooks
) -> None:
    """Register the implementations of plugins, after the hooks that all of them specify."""
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
    """Let the guard hooks of a plugin that could not be loaded refuse."""
    from pegboard.loading.absent import hooks_of_source  # nobody else pays for it

    if functions := dict(marked(each.unfit)):
        registry.stand_in(each, functions, each.error)
        return
    functions, known = hooks_of_source(each, imports)
    registry.stand_in(each, functions, each.error, known=known)


def _flaw(answer: Answer[Rule], owner: str) -> str:
    """Return why the plugin may not have this rule, "" if it may; `owner` registered the tool."""
    name = answer.value.permission
    text = f"its rule about the permission {name} is left out"
    if set("*?") & set(name):
        return f"{text}: it is about more than one"
    if name in RESERVED or owner != answer.plugin:
        whose = f"the plugin {owner}" if owner != answer.plugin else "Pegboard"
        return f"{text}: that is {whose}'s own"
    return ""
