"""What plugins bring that has a name, a database among it; and a project's code, loaded anew.

A project's code is looked at before each prompt while its App is open.

What was trusted goes on until the change is trusted, too: nobody can take a policy away by
editing it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pegboard.contract import hookspecs
from pegboard.contract.plugin import Answer
from pegboard.errors import ConfigError, PegboardError, RequiredHookError, StorageError, TrustError
from pegboard.hooks.isolation import blaming
from pegboard.ids import IdSource
from pegboard.loading.register import Change, Register
from pegboard.loading.toolset import Live
from pegboard.policy.agents import agents_from
from pegboard.providers import Keys, Provider
from pegboard.schema.config import Agent, Command, Config
from pegboard.schema.session import Rule
from pegboard.storage.protocol import OnCommit, Storage
from pegboard.trust.decisions import Decision, TrustStore
from pegboard.workspace import Workspace

_AT_OPENING = frozenset(
    {
        "config_load",
        "register_budget",
        "register_encloser",
        "register_files",
        "register_processes",
        "register_snapshots",
        "register_keystore",
        "register_storage",
        "startup",
        "wrap_providers",
    }
)
"""Hooks that are called when an App is opened and never again."""


@dataclass(slots=True, kw_only=True)
class Brought:
    """The agents, commands and providers of an App, and its configuration with plugins' rules.

    `said` is the configuration without these rules, `written` are the user's own. `outdated` are
    providers of a project's code that was loaded anew: a turn that runs may still ask them.
    """

    register: Register
    said: Config
    written: Sequence[Rule]
    workspace: Workspace
    env: Mapping[str, str]
    keys: Keys
    home: Path
    config_dir: Path
    config: Config = field(init=False)
    agents: Live[Agent] = field(default_factory=Live, init=False)
    commands: Live[Command] = field(default_factory=Live, init=False)
    providers: Live[Provider] = field(default_factory=Live, init=False)
    outdated: list[tuple[str, Provider]] = field(default_factory=list, init=False)
    _answers: tuple[Answer[Provider], ...] = field(default=(), init=False)

    async def collect(self) -> None:
        """Ask the plugins.

        :raises RequiredHookError: when a wrapper of providers that is required fails.
        :raises ConfigError: for settings of an agent that cannot be used.
        """
        await self._collect_plain()
        hooks = self.register.hooks
        self._answers = await hooks.collect(
            hookspecs.register_providers, config=self.config, env=self.env, keys=self.keys
        )
        self.providers.take(await self._wrapped(self._answers))

    async def renew(self, change: Change) -> tuple[str, ...]:
        """Have what the project's plugins bring now; what cannot count yet, a line each."""
        lines = list(_unheard(change))
        await self._collect_plain()
        gone = {each.key for each in change.old}
        hooks = self.register.hooks.only({each.key for each in change.new})
        new = await hooks.collect(
            hookspecs.register_providers, config=self.config, env=self.env, keys=self.keys
        )
        replaced = {each.value.id for each in self._answers if each.key in gone}
        left = tuple(each for each in self._answers if each.key not in gone)
        kept = {name: each for name, each in self.providers.items() if name not in replaced}
        back = tuple(each for each in left if each.value.id in replaced)
        try:
            wrapped = await self._wrapped((*back, *new))
        except RequiredHookError as error:
            wrapped = {}
            lines.append(f"its providers are left out: {error}")
        table = kept | wrapped
        now = set(map(id, table.values()))
        self.outdated += [each for each in self.providers.items() if id(each[1]) not in now]
        self._answers = (*left, *new)
        self.providers.take(table)
        return tuple(lines)

    async def _collect_plain(self) -> None:
        hooks = self.register.hooks
        self.config = await self.register.with_permissions(self.said, self.written)
        agents = await hooks.collect(hookspecs.register_agents, config=self.config)
        registered = [answer.value for answer in agents]
        commands = await hooks.collect(
            hookspecs.register_commands,
            config=self.config,
            workspace=self.workspace,
            home=self.home,
            config_dir=self.config_dir,
        )
        self.agents.take(agents_from(self.config, registered, self.register.tools.values()))
        self.commands.take(_by_name([answer.value for answer in commands], self.config))

    async def _wrapped(self, answers: Sequence[Answer[Provider]]) -> dict[str, Provider]:
        """The providers by id, without those that the user has switched off."""
        self.register.hooks.know(answers)
        found = {answer.value.id: answer.value for answer in answers}
        self.keys.note(name for provider in found.values() for name in provider.env)
        wanted, off = self.config.enabled_providers, self.config.disabled_providers
        left = {
            name: provider
            for name, provider in found.items()
            if name not in off and (wanted is None or name in wanted)
        }
        wrapped = await self.register.hooks.fold(
            hookspecs.wrap_providers,
            providers=left,
            config=self.config,
            keys=self.keys,
            workspace=self.workspace,
        )
        return dict(wrapped)


def _by_name(every: Sequence[Command], config: Config) -> dict[str, Command]:
    """The slash commands by name: the plugins' ones, the documents, then the user's."""
    found = {each.name: each for each in every if not each.is_document}
    found |= {each.name: each for each in every if each.is_document and each.name not in found}
    return found | {command.name: command for command in _configured_commands(config)}


def _configured_commands(config: Config) -> Iterator[Command]:
    for name, said in config.command.items():
        yield Command(
            name=name,
            template=said.template,
            hints=tuple(sorted(set(re.findall(r"\$\d+|\$ARGUMENTS", said.template)))),
            description=said.description,
            agent=said.agent,
            model=said.model,
            source="command",
            subtask=said.subtask,
        )


def _unheard(change: Change) -> Iterator[str]:
    """What of the project's plugins acts, or ends, only when the project is opened again."""
    for seen, others, what in (
        (change.new, change.old, "counts once"),
        (change.old, change.new, "as it was goes on until"),
    ):
        same = {(each.name, each.file) for each in others}
        for each in seen:
            hooks = _AT_OPENING.intersection(each.hooks) - (
                {"startup"} if seen is change.old else set()
            )
            if (each.name, each.file) not in same:
                yield from (
                    f"{each.name}: its {hook} {what} the project is opened again"
                    for hook in sorted(hooks)
                )


@dataclass(slots=True, kw_only=True)
class Reload:
    """Keeps the plugins of a project's files as they are trusted at this moment.

    `trust` is what was said for the App alone: True holds for what was there when it was opened,
    with False no code is run. Else what the user has said since counts, and trust that was taken
    back ends it. `seen` is the newest decision. `renewed` takes what the plugins bring beside tools
    and hooks.
    """

    register: Register
    config: Config
    renewed: Callable[[Change], Awaitable[Sequence[str]]]
    directory: Path
    store: TrustStore
    lock: str | None
    trust: bool | Decision | None
    seen: Decision
    _loaded: Decision = field(init=False)
    _looking: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._loaded = self.seen

    @property
    def untrusted(self) -> tuple[Path, ...]:
        """The files that nobody has trusted as they are now."""
        if self.seen.trusted:
            return ()
        old = self._loaded.files if self._loaded.trusted else {}
        return tuple(path for path, content in self.seen.files.items() if old.get(path) != content)

    async def look(self) -> None:
        """Load what has come to be trusted since; what has changed and is not, is told once."""
        if self.trust is False:
            return
        async with self._looking:
            before = self.seen
            found = await asyncio.to_thread(self._decide)
            if (found.trusted, found.key) == (before.trusted, before.key):
                return
            self.seen = found
            is_same = found.key == self._loaded.key
            if found.trusted and not (is_same and self._loaded.trusted):
                await self._take(found)
            elif not found.trusted and is_same and self._loaded.trusted:
                await self._take(found)  # trust was taken back
            elif not found.trusted:
                text = f"{found.reason}: `pegboard trust allow` has it used"
                kept = "; until then what was trusted before goes on"
                self._tell(text + (kept if self._loaded.trusted and self._loaded.files else ""))

    def _decide(self) -> Decision:
        code = {file.path for file in self._loaded.code}
        decide = partial(
            self.store.decide,
            directory=self.directory,
            worktree=self._loaded.root,
            config_files=[path for path in self._loaded.files if path not in code],
            plugin_paths=self._loaded.named,
            lock=Path(self.lock) if self.lock else None,
        )
        try:
            found = decide()
            holds = self.trust is not None and self._loaded.trusted
            return decide(answer=self._loaded) if holds and not found.trusted else found
        except TrustError:
            return self.seen  # the lock file is being written

    async def _take(self, decision: Decision) -> None:
        try:
            change = await self.register.reload(decision, self.config)
            for line in (*change.problems, *await self.renewed(change)):
                self._tell(line)
            code = {file.path for file in decision.code}
            for path, content in decision.files.items():
                if path not in code and self._loaded.files.get(path) != content:
                    self._tell(f"the settings of {path} count once the project is opened again")
        except PegboardError as error:
            self._tell(f"the project's code is not loaded anew: {error}")
            return
        self._loaded = decision

    def _tell(self, text: str) -> None:
        self.register.hooks.tell("project", "reload", text)


_VARIABLE = "PEGBOARD_DATABASE"
_PATH = ""
"""The scheme of a database that is named by its path."""


async def open_database(
    url: str | Path, *, register: Register, ids: IdSource, on_commit: OnCommit | None = None
) -> Storage:
    """The database at a URL or a path; of two plugins for one scheme the newer one opens it.

    :raises ConfigError: when no plugin opens databases of this kind.
    :raises StorageError: when it cannot be opened.
    :raises PluginError: when the plugin fails otherwise.
    """
    scheme = _scheme(url)
    answers = await register.hooks.answers(hookspecs.register_storage)
    kinds = {kind: (opens, each.plugin) for each in answers for kind, opens in each.value.items()}
    if scheme not in kinds:
        raise ConfigError(_missing(url, kinds, register), key=_VARIABLE)
    what = f"the storage {scheme}://" if scheme else "the storage"
    opens, plugin = kinds[scheme]
    with blaming(plugin, what, passing=(StorageError,)):
        return await opens(url if scheme else Path(url), ids=ids, on_commit=on_commit)


def _scheme(url: str | Path) -> str:
    scheme, mark, _ = str(url).partition("://")
    return scheme if mark else _PATH


def _missing(url: str | Path, kinds: Iterable[str], register: Register) -> str:
    scheme = _scheme(url)
    wanted = f"{scheme}:// databases" if scheme else f"a database at a path, as {url}"
    off = register.absent(hookspecs.register_storage)
    known = ", ".join(sorted(f"{each}://" if each else "a path" for each in kinds))
    way = f"name one that plugins here open: {known}" if known else "load a plugin that opens it"
    return f"no plugin opens {wanted}{off}; {way}"
