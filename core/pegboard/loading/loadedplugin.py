"""What becomes of a plugin that was found: imported, and given its options, or left out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

from pegboard.kit.suggestions import nearest_names
from pegboard.loading.candidates import Candidate, full_name
from pegboard.loading.discovery import LoadFailure, entry_points
from pegboard.loading.handle import MISSING, Flaw, Handle, options_of, texts_in
from pegboard.loading.registration import Problem, ProblemKind, Registrant, Registry, quoted
from pegboard.loading.toolset import Offer
from pegboard.schema.config import Config


class Seen(NamedTuple):
    """A plugin of the project, as it was loaded from this content."""

    key: str
    name: str
    hooks: tuple[str, ...]
    content: bytes


class Change(NamedTuple):
    """The project's plugins before and after they were loaded anew, and what is wrong with them."""

    old: tuple[Seen, ...]
    new: tuple[Seen, ...]
    problems: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class LoadedPlugin:
    """What became of a candidate.

    `unfit` is what was imported and cannot be used; `is_double` says that it is in use elsewhere.
    """

    key: str
    candidate: Candidate
    handle: Handle
    plugin: object = None
    unfit: object = None
    is_double: bool = False
    model: type | None = None
    secrets: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    load_ms: float = 0.0
    error: str = ""
    tools: list[str] = field(default_factory=list)

    @property
    def registrant(self) -> Registrant:
        """What the registry is told of it."""
        named = self.candidate
        return Registrant(
            key=self.key,
            name=named.name,
            origin=named.origin,
            plugin=self.plugin,
            table=named.table,
            handle=self.handle,
        )

    @property
    def seen(self) -> Seen:
        """What a reload tells of it."""
        file = self.candidate.file
        return Seen(self.key, self.candidate.name, self.hooks, file.content if file else b"")

    def load(self, others: "Sequence[LoadedPlugin]", registry: Registry) -> None:
        """Import the plugin unless it may not be or cannot be."""
        candidate = self.candidate
        self.error = candidate.forbidden
        if candidate.forbidden:
            return
        started = perf_counter()
        plugin = candidate.load()
        self.load_ms = (perf_counter() - started) * 1000
        twin = _twin(self, others)
        same = next((each for each in others if each.plugin is plugin), None)
        self.is_double = same is not None
        if isinstance(plugin, LoadFailure):
            self.fail(plugin.kind, plugin.text, registry, plugin.traceback)
        elif twin is not None:
            first, second = (each.candidate.distribution for each in (twin, self))
            text = (
                f"{first} and {second} both have a plugin {candidate.name}, and that of {first} is"
                f' loaded; uninstall one, or write [plugins."{full_name(candidate)}"]'
                " enabled = false"
            )
            self.plugin = plugin
            self.fail("clash", text, registry)
        elif same is not None:
            text = f"it is the very object that is loaded as {same.candidate.name} already"
            self.fail("clash", text, registry)
        else:
            self.plugin = plugin

    def judge(
        self,
        config: Config,
        locate: Callable[[str], str],
        registry: Registry,
        namesakes: Sequence[str] = (),
    ) -> None:
        """Give the plugin its options; one whose options are wrong is left out.

        `namesakes` are the names of settings of all plugins that are called like this one.
        """
        name = self.candidate.table
        said = config.plugins.get(name)
        table = said.options if said else {}
        found = options_of(self.plugin, table)
        self.model, self.handle.options, self.secrets = found.model, found.value, found.secrets
        flaws = found.flaws
        if self.plugin is None:
            self.secrets = ("",)
        self.handle.hide(text for key in found.secrets for text in texts_in(table.get(key)))
        if self.plugin is not None and self.model is None and said and said.options:
            flaws = flaws or _unheard(self, said.options, namesakes)
        for flaw in flaws:
            key = ".".join(filter(None, ("plugins", quoted(name), "options", flaw.key)))
            way = f"; `pegboard config set {key} VALUE` sets it" if flaw.text == MISSING else ""
            self.fail("options", f"{locate(key)}: {flaw.text}{way}", registry)

    def fail(self, kind: ProblemKind, text: str, registry: Registry, detail: str = "") -> None:
        """Leave the plugin out, and say why."""
        self.unfit, self.plugin = self.plugin or self.unfit, None
        self.error = self.error or text
        registry.problems.append(
            Problem(kind=kind, plugin=self.candidate.name, text=text, detail=detail)
        )


def tables_of_none(
    config: Config, found: Sequence[Candidate], locate: Callable[[str], str]
) -> Iterator[Problem]:
    """The settings that are of no plugin that there is."""
    if not (strange := config.plugins.keys() - {each.table for each in found}):
        return
    known = {
        *(name for each in found for name in (each.name, each.table)),
        *(each.name for each in entry_points()),
    }
    for name in sorted(strange - known):
        nearest = nearest_names(name, known, limit=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        text = f"{locate(f'plugins.{name}')}: there is no plugin {name}{hint}"
        yield Problem(kind="options", plugin=name, text=text)


def _twin(loaded: LoadedPlugin, others: Sequence[LoadedPlugin]) -> LoadedPlugin | None:
    """The plugin of this name that another installed distribution has brought already."""
    if loaded.candidate.origin != "installed":
        return None
    name = loaded.candidate.name
    same = (each for each in others if each.candidate.origin == "installed" and each.plugin)
    return next((each for each in same if each.candidate.name == name), None)


def _unheard(
    loaded: LoadedPlugin, table: Mapping[str, object], namesakes: Sequence[str]
) -> tuple[Flaw, ...]:
    """Options that nobody looks at: each of our own plugins that has options declares them."""
    if loaded.candidate.origin != "builtin":
        return ()
    others = [f'[plugins."{each}"]' for each in namesakes if each != loaded.candidate.table]
    hint = f"; the options of the other of this name stand in {others[0]}" if others else ""
    return tuple(Flaw(name, f"unknown option; this plugin has none{hint}") for name in table)
