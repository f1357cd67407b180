"""The options of an App: configuration, trust, plugins and database."""

import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from pegboard.config.configuration import LoadedConfig, load_config
from pegboard.contract import apphooks
from pegboard.contract.plugin import hookimpl
from pegboard.contract.tools import Tool, tool
from pegboard.engine.bus import Bus
from pegboard.errors import ConfigError, StorageError
from pegboard.hooks.callers import Hooks
from pegboard.hooks.isolation import blaming
from pegboard.ids import IdSource
from pegboard.kit.hosts import tightened
from pegboard.loading.candidates import Sources
from pegboard.loading.register import PluginInfo, Register
from pegboard.loading.registrant import Registrant
from pegboard.paths import UserFolders, home_of
from pegboard.schema.config import Config, SandboxLevel
from pegboard.schema.event import Event, PluginFailed
from pegboard.storage import OnCommit, Storage
from pegboard.trust.decisions import Decision, TrustStore
from pegboard.workspace import Workspace, open_workspace

_FAILURES_KEPT = 100
_VARIABLE = "PEGBOARD_DATABASE"


class AppOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an App.

    `config` overrides the configuration files and the selected `profile`, in the syntax of the
    files. `plugins` are additional plugin objects, newer than all others. `tools` are functions
    that the model can call, with or without `@tool`. `interactive` is whether a user answers
    permission requests; without it an ask becomes a deny.

    `trust` decides about the project's own code for this App only; a `Decision` trusts only its
    files. With None, earlier decisions of the user count. `env` replaces the environment variables.
    `config_dir`, `data_dir`, `state_dir` and `cache_dir` replace the user's folders.
    """

    config: Mapping[str, object] = {}
    profile: str | None = None
    plugins: Sequence[object] = ()
    tools: Sequence[Tool | Callable[..., Any]] = ()
    builtins: bool = True
    installed: bool = True
    interactive: bool = False
    trust: bool | Decision | None = None
    env: Mapping[str, str] | None = None
    config_dir: Path | None = None
    data_dir: Path | None = None
    state_dir: Path | None = None
    cache_dir: Path | None = None


class AppTools:
    """A plugin that registers the tools that a program has passed as `AppOptions.tools`.

    :raises SignatureError: for a parameter that cannot be described to a model.
    """

    def __init__(self, tools: Sequence[Tool | Callable[..., Any]]) -> None:
        self._tools = [each if isinstance(each, Tool) else tool(each) for each in tools]

    @hookimpl
    def register_tools(self) -> Sequence[Tool]:
        """Return the tools that the program has passed."""
        return self._tools


class Opening(msgspec.Struct, frozen=True):
    """The state of an App that is being opened: its options, workspace, variables and folders.

    `failures` are the newest failures of plugins.
    """

    options: AppOptions
    workspace: Workspace
    env: Mapping[str, str]
    places: UserFolders
    bus: Bus = msgspec.field(default_factory=Bus)
    ids: IdSource = msgspec.field(default_factory=IdSource)
    failures: deque[PluginFailed] = msgspec.field(
        default_factory=partial(deque, maxlen=_FAILURES_KEPT)
    )

    @classmethod
    def of(cls, directory: Path, options: AppOptions) -> "Opening":
        """Return the state of an opening App for this directory.

        :raises InvalidInputError: when it is not a directory.
        """
        env = dict(os.environ if options.env is None else options.env)
        places = UserFolders.of(
            env,
            config=options.config_dir,
            data=options.data_dir,
            state=options.state_dir,
            cache=options.cache_dir,
        )
        return cls(options, open_workspace(directory), env, places)

    @property
    def database(self) -> str | Path:
        """The URL or path of the database."""
        return self.env.get(_VARIABLE, "") or self.places.database

    async def configured(self) -> tuple[LoadedConfig, Decision]:
        """Load the configuration; if the project is trusted, load it again with all its settings.

        :raises ConfigError: when the configuration is invalid.
        """
        loaded = await self.read(trusted=False)
        decision = self.decide(loaded.untrusted, loaded.plugin_paths, answer=self.options.trust)
        if decision.trusted and loaded.untrusted:
            loaded = await self.read(trusted=decision.files)
            decision = replace(decision, named=loaded.plugin_paths)  # of the files as trusted
        return loaded, decision

    async def read(self, *, trusted: bool | Mapping[Path, bytes]) -> LoadedConfig:
        """Load the configuration as `load_config` does with these files trusted.

        :raises ConfigError: when the configuration is invalid.
        """
        return await load_config(
            self.workspace,
            config_dir=self.places.config,
            env=self.env,
            overrides=self.options.config,
            profile=self.options.profile,
            trusted=trusted,
        )

    async def as_plugins_say(self, hooks: Hooks, said: Config, by: Decision) -> Config:
        """Return the configuration as plugins change it, but with no looser sandbox and limits.

        :raises RequiredHookError: when a required `config_load` fails.
        """
        config = await hooks.fold(
            apphooks.config_load,
            config=said,
            workspace=self.workspace,
            home=home_of(self.env),
            places=self.places,
            trusted=by.files if by.trusted else {},
        )
        return replace(
            config,
            sandbox=max(config.sandbox, said.sandbox, key=get_args(SandboxLevel).index),
            limits=config.limits.tighten(said.limits),
            sandbox_network=tightened(config.sandbox_network, said.sandbox_network),
            sandbox_allow_commands=config.sandbox_allow_commands and said.sandbox_allow_commands,
        )

    async def whole(self, register: Register, decision: Decision) -> Decision:
        """Return the trust decision, extended by the files that plugins name as files to trust.

        :raises TrustError: when the lock file is invalid.
        """
        named = await self.named_files(register)
        if not named:
            return decision
        code = {file.path for file in decision.code}
        files = (*(path for path in decision.files if path not in code), *named)
        return self.decide(files, decision.named, answer=self.options.trust)

    async def named_files(self, register: Register) -> tuple[Path, ...]:
        """Return the project files that plugins name as files to trust (`trusted_files`).

        Only existing files in the worktree count. Plugins from the project itself are not asked.
        """
        answers = await register.hooks.collect(apphooks.trusted_files, workspace=self.workspace)
        root = self.workspace.worktree.resolve()
        found = [each.value.resolve() for each in answers if each.origin != "project"]
        return tuple(path for path in found if path.is_relative_to(root) and path.is_file())

    def decide(
        self,
        config_files: Sequence[Path],
        plugin_paths: Sequence[Path],
        *,
        answer: bool | Decision | None = None,
    ) -> Decision:
        """Decide whether to trust the project's code, with `TrustStore.decide`.

        :raises TrustError: when the lock file is invalid.
        """
        lock = self.env.get("PEGBOARD_TRUST_LOCK")
        return TrustStore(self.places.trust).decide(
            directory=self.workspace.directory,
            worktree=self.workspace.worktree,
            config_files=config_files,
            plugin_paths=plugin_paths,
            answer=answer,
            lock=Path(lock) if lock else None,
        )

    async def register(
        self,
        loaded: LoadedConfig,
        decision: Decision,
        *,
        fitting: Callable[[Registrant], bool] = lambda _: True,
    ) -> Register:
        """Load the plugins for which `fitting` is True, and return their register."""
        register = self.unloaded(loaded, decision, fitting=fitting)
        await register.load()
        return register

    def unloaded(
        self,
        loaded: LoadedConfig,
        decision: Decision,
        *,
        fitting: Callable[[Registrant], bool] = lambda _: True,
    ) -> Register:
        """Return a register of the plugins for which `fitting` is True, before it loads them."""
        sources = Sources(
            directory=self.workspace.directory,
            places=self.places,
            config=loaded.config,
            env=self.env,
            decision=decision,
            extra=(*self.options.plugins, *map(AppTools, filter(None, [self.options.tools]))),
            builtins=self.options.builtins,
            installed=self.options.installed,
            locate=loaded.place,
            fitting=fitting,
            on_failure=self._failed,
        )
        return Register(sources)

    def _failed(self, failure: PluginFailed) -> None:
        self.failures.append(failure)
        self.bus.publish(Event(properties=failure))


async def open_storage(
    url: str | Path = "",
    *,
    ids: IdSource,
    on_commit: OnCommit | None = None,
    directory: Path | None = None,
) -> Storage:
    """Open the database at a URL or a path; "" is the database that an App of `directory` uses.

    A plugin of `register_storage` opens it. Only plugins with a module that names this hook are
    imported, and no code of the project. `directory` is the project, None for the current folder.
    Unfinished messages of dead processes are marked as interrupted. `on_commit` is called for these
    and all other commits.

    :raises ConfigError: when no plugin opens databases of this kind.
    :raises StorageError: when it cannot be opened.
    """
    async with _having(apphooks.register_storage, directory or Path.cwd()) as (opening, register):
        place = url or opening.database
        return await open_database(place, register=register, ids=ids, on_commit=on_commit)


async def files_to_trust(directory: Path) -> tuple[Path, ...]:
    """Return the project's files that plugins want to be trusted, without running any of the files.

    :raises ConfigError: when the configuration is invalid.
    """
    async with _having(apphooks.trusted_files, directory) as (opening, register):
        return await opening.named_files(register)


@asynccontextmanager
async def _having(
    spec: Callable[..., object], directory: Path
) -> AsyncIterator[tuple[Opening, Register]]:
    """Yield a register that has loaded only the plugins with the name of a hook in their source.

    Plugins of the project are not loaded.
    """
    from pegboard.loading.absent import names_hook  # an App does without it

    opening = Opening.of(directory, AppOptions(trust=False))
    loaded, decision = await opening.configured()
    fitting = partial(names_hook, spec=spec)
    register = await opening.register(loaded, decision, fitting=fitting)
    try:
        yield opening, register
    finally:
        await register.aclose()


async def find_plugins(directory: Path) -> tuple[PluginInfo, ...]:
    """Return the plugins that an App of the directory would load, without importing any of them.

    :raises ConfigError: when the configuration is invalid.
    """
    opening = Opening.of(directory, AppOptions())
    register = opening.unloaded(*await opening.configured())
    try:
        return register.find()
    finally:
        await register.aclose()


async def open_database(
    url: str | Path, *, register: Register, ids: IdSource, on_commit: OnCommit | None = None
) -> Storage:
    """Open the database at a URL or path; if two plugins open this kind, the newer plugin does.

    :raises ConfigError: when no plugin opens databases of this kind.
    :raises StorageError: when it cannot be opened.
    :raises PluginError: when the plugin fails otherwise.
    """
    before, mark, _ = str(url).partition("://")
    scheme = before if mark else ""  # that of a path
    answers = await register.hooks.answers(apphooks.register_storage)
    kinds = {kind: (opens, each.plugin) for each in answers for kind, opens in each.value.items()}
    if scheme not in kinds:
        wanted = f"{scheme}:// databases" if scheme else f"a database at a path, as {url}"
        off = register.absent(apphooks.register_storage)
        known = ", ".join(sorted(f"{each}://" if each else "a path" for each in kinds))
        name = f"name one that plugins here open: {known}"
        way = name if known else "load a plugin that opens it"
        raise ConfigError(f"no plugin opens {wanted}{off}; {way}", key=_VARIABLE)
    what = f"the storage {scheme}://" if scheme else "the storage"
    opens, plugin = kinds[scheme]
    with blaming(plugin, what, passing=(StorageError,)):
        return await opens(url if scheme else Path(url), ids=ids, on_commit=on_commit)
