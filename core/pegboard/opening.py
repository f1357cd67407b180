"""How an App comes to be: configuration, trust, plugins, database, and what they register."""

import asyncio
import os
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, get_args

import msgspec
from msgspec.structs import replace

from pegboard.config.configuration import LoadedConfig, load_config
from pegboard.contract import hookspecs
from pegboard.contract.plugin import Stash
from pegboard.credentials.keyfile import PluginSecrets
from pegboard.credentials.keylookup import KeyLookup
from pegboard.engine.bus import Bus, telling
from pegboard.engine.engine import Engine
from pegboard.engine.models import Models
from pegboard.errors import ConfigError, PegboardError, ToolError
from pegboard.hooks.callers import Hooks
from pegboard.ids import IdSource
from pegboard.kit.hosts import tightened
from pegboard.loading.loadedplugin import Change
from pegboard.loading.register import Register, load_plugins
from pegboard.loading.reload import Brought, Reload, open_database
from pegboard.paths import Places
from pegboard.processes import OpenProcesses
from pegboard.schema.config import Config, ProcessLimits, SandboxLevel
from pegboard.schema.event import Event, PluginFailed
from pegboard.schema.session import Rule
from pegboard.storage.protocol import Storage
from pegboard.storage.snapshots import Snapshots
from pegboard.trust.decisions import Decision, TrustStore
from pegboard.trust.projectcode import misplaced, misplaced_below, running_settings
from pegboard.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from pegboard.processes import Enclosure

SWEEP_AFTER_S = 2.0
"""Old outputs are removed once the start of an App, and its first request, are over."""
_FAILURES_KEPT = 100
_PRIVATE_FILES = ("PEGBOARD_CONFIG", "PEGBOARD_TRUST_LOCK")


class AppOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How an App is opened.

    `config` is laid over the configuration's files, in their syntax, and over the `profile` that
    is chosen from them. `plugins` are objects that are plugins too, the newest of all.
    `interactive` says that somebody answers permission requests; without it an ask is a deny.
    `trust` decides about the project's own code for this App alone, a decision for just the files
    that it is about; None leaves it to what the user said before. `env` stands for the
    environment, the folders for the user's.
    """

    config: Mapping[str, object] = {}
    profile: str | None = None
    plugins: tuple[object, ...] = ()
    builtins: bool = True
    installed: bool = True
    interactive: bool = False
    trust: bool | Decision | None = None
    env: Mapping[str, str] | None = None
    config_dir: Path | None = None
    data_dir: Path | None = None
    state_dir: Path | None = None
    cache_dir: Path | None = None

    def places(self, env: Mapping[str, str]) -> Places:
        """The folders: those that are given, the environment's, then the system's."""
        return Places.of(
            env,
            config=self.config_dir,
            data=self.data_dir,
            state=self.state_dir,
            cache=self.cache_dir,
        )


async def assemble(directory: Path, options: AppOptions) -> "_Opened":
    """The engine with its database open, the configuration and the plugins; nothing runs.

    :raises InvalidInputError: when it is not a directory.
    :raises ConfigError: when the configuration cannot be used.
    :raises StorageError: when the database cannot be opened.
    """
    return await _Assembly(directory, options).opened()


async def close(engine: Engine, register: Register) -> None:
    """End the processes, and close plugins, providers and the database, in this order."""
    await engine.end_processes()
    if engine.enclosure is not None:
        await engine.enclosure.aclose()
    engine.sweeping.cancel()
    await asyncio.wait({engine.sweeping})  # without a limit: it ends at its next await
    await register.aclose()
    for name, provider in (*engine.providers.items(), *engine.outdated):
        await engine.hooks.close(provider, f"the provider {name}")
    if engine.snapshots is not None:
        await engine.hooks.close(engine.snapshots, "the snapshots")
    engine.bus.close()
    await engine.storage.aclose()


_Opened = tuple[Engine, LoadedConfig, Reload]


class _Assembly:
    """The steps of opening an App; what takes the disk's time runs beside the rest."""

    def __init__(self, directory: Path, options: AppOptions) -> None:
        self._directory = directory
        self._options = options
        self._env = dict(os.environ if options.env is None else options.env)
        self._places = options.places(self._env)
        self._home = Path(self._env.get("HOME") or Path.home())
        self._bus = Bus()
        self._hooks: Hooks | None = None
        self._ids = IdSource()
        self._failures: deque[PluginFailed] = deque(maxlen=_FAILURES_KEPT)

    async def opened(self) -> _Opened:
        workspace = open_workspace(self._directory)
        loaded, decision = await self._configured(workspace)
        register = await self._plugins(workspace, loaded, decision)
        storage = asyncio.ensure_future(self._storage(register))
        try:
            return await self._assembled(workspace, loaded, decision, register, storage)
        except BaseException:
            await _discard(storage)
            raise

    async def _assembled(
        self,
        workspace: Workspace,
        loaded: LoadedConfig,
        decision: Decision,
        register: Register,
        opening: "asyncio.Future[Storage]",
    ) -> _Opened:
        hooks = register.hooks
        config = await _as_plugins_say(hooks, loaded.config)
        tools = await register.collect_tools(config)
        keys = KeyLookup(config, self._env, file=self._places.keys, root=workspace.worktree)
        keys.hide(register.secrets)
        brought = await self._brought(register, config, loaded.config.permission, workspace, keys)
        config = brought.config
        storage = await opening
        private = self._private(workspace, storage)
        engine = Engine(
            workspace=workspace,
            config=config,
            hooks=hooks,
            storage=storage,
            bus=self._bus,
            failures=self._failures,
            interactive=self._options.interactive,
            ids=self._ids,
            tools=tools,
            commands=brought.commands,
            agents=brought.agents,
            providers=brought.providers,
            outdated=brought.outdated,
            keys=keys,
            env=self._env,
            home=self._home,
            places=self._places,
            secrets=keys.values(),
            private=private,
            decision=decision,
            stash=Stash(),
            open_processes=await _processes(register),
            snapshots=await self._snapshots(hooks, workspace, config),
            enclosure=await self._enclosure(workspace, config, private),  # nothing fails after it
            models=Models(brought.providers, hooks, config, self._places, keys),
            sweeping=asyncio.create_task(_swept(self._places.tool_output), name="sweep"),
        )
        return engine, loaded, self._reload(engine, brought, decision)

    async def _brought(
        self,
        register: Register,
        config: Config,
        written: Sequence[Rule],
        workspace: Workspace,
        keys: KeyLookup,
    ) -> Brought:
        brought = Brought(
            register=register,
            said=config,
            written=written,
            workspace=workspace,
            env=self._env,
            keys=keys,
            on_named=keys.note,
            home=self._home,
            config_dir=self._places.config,
        )
        await brought.collect()
        return brought

    def _reload(self, engine: Engine, brought: Brought, decision: Decision) -> Reload:
        async def renewed(change: Change) -> Sequence[str]:
            lines = await brought.renew(change)
            engine.config = brought.config
            return lines

        workspace = engine.workspace
        return Reload(
            register=brought.register,
            config=engine.config,
            renewed=renewed,
            directory=workspace.directory,
            store=TrustStore(self._places.trust),
            lock=self._env.get("PEGBOARD_TRUST_LOCK"),
            trust=self._options.trust,
            seen=decision,
        )

    async def _snapshots(
        self, hooks: Hooks, workspace: Workspace, config: Config
    ) -> Snapshots | None:
        spec, places, env = hookspecs.register_snapshots, self._places, self._env
        return await hooks.first(spec, config=config, workspace=workspace, places=places, env=env)

    async def _enclosure(
        self, workspace: Workspace, config: Config, private: tuple[Path, ...]
    ) -> "Enclosure | None":
        """Where processes are enclosed, None where the user has not asked for it."""
        if config.sandbox == "off":
            return None
        assert self._hooks is not None
        from pegboard.processes import Site  # nobody else pays for it

        encloser = await self._hooks.first(hookspecs.register_encloser, hooks=self._hooks)
        if encloser is None:
            text = f'no plugin encloses as "{config.sandbox}"; enable one, or set sandbox = "off"'
            raise ConfigError(text, key="sandbox")
        site = Site(
            config=config,
            workspace=workspace,
            places=self._places,
            home=self._home,
            private=private,
        )
        return await encloser.open(site)

    def _private(self, workspace: Workspace, storage: Storage) -> tuple[Path, ...]:
        """What no tool may change unasked, wherever this App has it."""
        files = [self._env.get(name, "") for name in _PRIVATE_FILES]
        named = [workspace.directory / name for name in files if name]
        found = [*self._places.kept, *named, *storage.files, *workspace.git_dirs]
        return tuple(dict.fromkeys(Path(os.path.realpath(path)) for path in found))

    async def _plugins(
        self, workspace: Workspace, loaded: LoadedConfig, decision: Decision
    ) -> Register:
        register = await load_plugins(
            directory=workspace.directory,
            config_dir=self._places.config,
            config=loaded.config,
            env=self._env,
            decision=decision,
            extra=self._options.plugins,
            builtins=self._options.builtins,
            installed=self._options.installed,
            places=self._places,
            secrets=PluginSecrets(self._places, self._env),
            locate=loaded.place,
            on_failure=partial(_failed, self._bus, self._failures),
        )
        self._hooks = register.hooks
        self._bus.attach(telling(register.hooks))
        return register

    async def _storage(self, register: Register) -> Storage:
        """The database, opened beside what else is to be done once the plugins are there."""
        return await open_database(
            self._env.get("PEGBOARD_DATABASE", "") or self._places.database,
            register=register,
            ids=self._ids,
            on_commit=self._bus.publish_all,
        )

    async def _configured(self, workspace: Workspace) -> tuple[LoadedConfig, Decision]:
        """The configuration, read again in full when the project turns out to be trusted."""
        loaded = await self._config(workspace, trusted=False)
        wrong = (
            *misplaced_below(self._places.config),
            *misplaced(workspace.directory, workspace.worktree),
        )
        lock = self._env.get("PEGBOARD_TRUST_LOCK")
        decision = TrustStore(self._places.trust).decide(
            directory=workspace.directory,
            worktree=workspace.worktree,
            config_files=loaded.untrusted,
            plugin_paths=loaded.plugin_paths,
            answer=self._options.trust,
            lock=Path(lock) if lock else None,
        )
        if decision.trusted and loaded.untrusted:
            loaded = await self._config(workspace, trusted=decision.files)
            decision = replace(decision, named=loaded.plugin_paths)  # of the files as trusted
        loaded = replace(loaded, warnings=(*loaded.warnings, *wrong)) if wrong else loaded
        if decision.trusted:
            return loaded, decision
        if runs := running_settings(workspace.git_dirs):
            text = f"git runs programs of this repository, in a shell too: {', '.join(runs)}"
            loaded = replace(loaded, warnings=(*loaded.warnings, text))
        return loaded, decision

    async def _config(
        self, workspace: Workspace, *, trusted: bool | Mapping[Path, bytes]
    ) -> LoadedConfig:
        return await load_config(
            workspace,
            config_dir=self._places.config,
            env=self._env,
            overrides=self._options.config,
            trusted=trusted,
            profile=self._options.profile,
        )


async def _processes(register: Register) -> OpenProcesses:
    """What a plugin runs processes with, else what says that none does."""
    found = await register.hooks.first(hookspecs.register_processes)
    if found is not None:
        return found
    missing = f"no plugin runs processes{register.absent(hookspecs.register_processes)}"

    def refuse(_: ProcessLimits) -> NoReturn:
        raise ToolError(missing)

    return refuse


async def _swept(outputs: Path) -> None:
    await asyncio.sleep(SWEEP_AFTER_S)
    from pegboard.engine.toolresult import sweep  # nothing of it before the first call

    await sweep(outputs)


def _failed(bus: Bus, failures: deque[PluginFailed], failure: PluginFailed) -> None:
    failures.append(failure)
    bus.publish(Event(properties=failure))


async def _as_plugins_say(hooks: Hooks, said: Config) -> Config:
    """What plugins make of the configuration, its sandbox and limits as tight as was said."""
    config = await hooks.fold(hookspecs.config_load, config=said)
    return msgspec.structs.replace(
        config,
        sandbox=max(config.sandbox, said.sandbox, key=get_args(SandboxLevel).index),
        limits=config.limits.tightened(said.limits),
        sandbox_network=tightened(config.sandbox_network, said.sandbox_network),
        sandbox_allow_commands=config.sandbox_allow_commands and said.sandbox_allow_commands,
    )


async def _discard(storage: "asyncio.Future[Storage]") -> None:
    """Close a database whose App did not come to be."""
    try:
        opened = await storage
    except (PegboardError, asyncio.CancelledError):
        return
    await opened.aclose()
