"""A plugin of one App, from where it is found until it is registered or left out."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from msgspec.structs import replace

from pegboard.contract.plugin import Origin, Plugin
from pegboard.loading.discovery import Problem
from pegboard.loading.handle import MISSING, Belongings, Flaw, Handle, options_of, texts_in
from pegboard.schema.config import Config, PluginConfig
from pegboard.trust.projectcode import CodeFile


@dataclass(slots=True, kw_only=True, eq=False)
class Registrant:
    """A plugin; `file` is the file that it is made from, if any.

    `table` is the name of its settings: its own, or behind its distribution or origin and a slash
    where a built-in plugin has that name, or the user has written it so. `key` tells plugins of
    one name apart. What is `forbidden` is not imported, and the text says by whose word.

    `plugin` is None where it is left out, because of `error`; `unfit` is what was imported and
    cannot be used, `is_double` says that it is in use elsewhere. `options` is the class of its
    options, `handle` what its functions get that ask for `plugin`.
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
    hooks: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    load_ms: float = 0.0
    error: str = ""

    @property
    def full_name(self) -> str:
        """The name with which it is told from others of its name: `house-plugins/guard`."""
        return f"{self.distribution or self.origin}/{self.name}"

    @property
    def blocked(self) -> bool:
        """Whether somebody has forbidden it."""
        return bool(self.forbidden)

    def enter(self, others: "Sequence[Registrant]") -> Problem | None:
        """Import the plugin unless it may not be or cannot be; what is wrong with it."""
        self.error = self.forbidden
        if self.forbidden:
            return None
        started = perf_counter()
        plugin = self.load()
        self.load_ms = (perf_counter() - started) * 1000
        if isinstance(plugin, Problem):
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
            return self._failed(Problem("clash", self.name, text))
        if same is not None:
            text = f"it is the very object that is loaded as {same.name} already"
            return self._failed(Problem("clash", self.name, text))
        return None

    def judge(
        self,
        config: Config,
        locate: Callable[[str], str],
        belongings: Belongings,
        namesakes: Sequence[str] = (),
    ) -> list[Problem]:
        """Give the plugin its options; one whose options are wrong is left out, and it is said why.

        `namesakes` are the names of settings of all plugins that are called like this one.
        """
        table = config.plugins.get(self.table, PluginConfig()).options
        found = options_of(self.plugin, table)
        self.handle = Handle(self.name, belongings, found.value)
        self.options = found.model
        self.secrets = ("",) if self.plugin is None else found.secrets
        belongings.hide(text for key in found.secrets for text in texts_in(table.get(key)))
        flaws = found.flaws
        if self.plugin is not None and self.options is None and not flaws:
            flaws = self._unheard(table, namesakes)
        problems = []
        for flaw in flaws:
            key = ".".join(filter(None, ("plugins", quoted(self.table), "options", flaw.key)))
            way = f"; `pegboard config set {key} VALUE` sets it" if flaw.text == MISSING else ""
            text = f"{locate(key)}: {flaw.text}{way}"
            problems.append(self._failed(Problem("options", self.name, text)))
        return problems

    def _failed(self, problem: Problem) -> Problem:
        """The problem, because of which the plugin is left out, with its name."""
        self.unfit, self.plugin = self.plugin or self.unfit, None
        self.error = self.error or problem.text
        return replace(problem, plugin=self.name)

    def _twin(self, others: "Sequence[Registrant]") -> "Registrant | None":
        """The plugin of this name that another installed distribution has brought already."""
        if self.origin != "installed":
            return None
        same = (each for each in others if (each.origin, each.name) == (self.origin, self.name))
        return next((each for each in same if each.plugin), None)

    def _unheard(self, table: Mapping[str, object], namesakes: Sequence[str]) -> tuple[Flaw, ...]:
        """Options that nobody looks at: each of our own plugins that has options declares them."""
        if self.origin != "builtin":
            return ()
        others = [f'[plugins."{each}"]' for each in namesakes if each != self.table]
        hint = f"; the options of the other of this name stand in {others[0]}" if others else ""
        return tuple(Flaw(name, f"unknown option; this plugin has none{hint}") for name in table)


def quoted(name: str) -> str:
    """The name as it is written in a dotted key."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
