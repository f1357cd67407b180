"""How an App comes to be: configuration, trust, plugins, database, and what they register."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from pegboard.config.configuration import LoadedConfig, load_config
from pegboard.contract import hookspecs
from pegboard.contract.plugin import Stash
from pegboard.engine.bus import Bus, telling
from pegboard.engine.engine import Engine
from pegboard.engine.models import Models
from pegboard.errors import ConfigError, PegboardError, ToolError
from pegboard.hooks.callers import Hooks
from pegboard.ids import IdSource
from pegboard.kit.hosts import tightened
from pegboard.loading.candidates import Sources
from pegboard.loading.register import Change, Register
from pegboard.loading.reload import Brought, Reload, open_database
from pegboard.paths import Places
from pegboard.providers import Keys
from pegboard.providers.spending import Budget, OpenBudget
from pegboard.schema.config import BudgetConfig, Config, SandboxLevel
from pegboard.schema.event import Event, PluginFailed
from pegboard.schema.session import Rule
from pegboard.storage.protocol import Storage
from pegboard.storage.snapshots import Snapshots
from pegboard.trust.decisions import Decision, TrustStore
from pegboard.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from pegboard.processes import Enclosure

SWEEP_AFTER_S = 2.0
"""Old outputs are removed once the start of an App, and its first request, are over."""
_FAILURES_KEPT = 100
_Opener = TypeVar("_Opener", bound=Callable[..., object])
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
    env = dict(os.environ if options.env is None else options.env)
    opening = _Opening(
        options=options,
        workspace=open_workspace(directory),
        env=env,
        places=options.places(env),
        home=Path(env.get("HOME") or Path.home()),
    )
    return await opening.opened()


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


@dataclass(slots=True, kw_only=True)
class _Opening:
    """The steps of opening an App; what takes the disk's time runs beside the rest."""

    options: AppOptions
    workspace: Workspace
    env: Mapping[str, str]
    places: Places
    home: Path
    bus: Bus = field(default_factory=Bus)
    ids: IdSource = field(default_factory=IdSource)
    failures: deque[PluginFailed] = field(default_factory=partial(deque, maxlen=_FAILURES_KEPT))

    async def opened(self) -> _Opened:
        loaded, decision = await self._configured()
        register = await self._plugins(loaded, decision)
        place = self.env.get("PEGBOARD_DATABASE", "") or self.places.database
        storage = asyncio.ensure_future(
            open_database(place, register=register, ids=self.ids, on_commit=self.bus.publish_all)
        )
        try:
            return await self._assembled(loaded, decision, register, storage)
        except BaseException:
            await _discard(storage)
            raise

    async def _assembled(
        self,
        loaded: LoadedConfig,
        decision: Decision,
        register: Register,
        opening: "asyncio.Future[Storage]",
    ) -> _Opened:
        hooks, workspace, places = register.hooks, self.workspace, self.places
        store = await hooks.first(
            hookspecs.register_keystore, env=self.env, places=places, workspace=workspace
        )
        register.use(store)
        config = await _as_plugins_say(hooks, loaded.config)
        tools = await register.collect_tools(config)
        keys = Keys(config, self.env, store, hidden=register.secrets)
        brought = await self._brought(register, config, loaded.config.permission, keys)
        config = brought.config
        storage = await opening
        private = self._private(storage)
        engine = Engine(
            workspace=workspace,
            config=config,
            hooks=hooks,
            storage=storage,
            bus=self.bus,
            failures=self.failures,
            interactive=self.options.interactive,
            ids=self.ids,
            tools=tools,
            commands=brought.commands,
            agents=brought.agents,
            providers=brought.providers,
            outdated=brought.outdated,
            keys=keys,
            env=self.env,
            home=self.home,
            places=places,
            secrets=keys.values(),
            private=private,
            decision=decision,
            stash=Stash(),
            open_processes=await _opener(register, hookspecs.register_processes, "runs processes"),
            open_files=await _opener(register, hookspecs.register_files, "knows files"),
            open_budget=await _budget(register, config),
            snapshots=await self._snapshots(hooks, config),
            enclosure=await self._enclosure(hooks, config, private),  # nothing fails after it
            models=Models(brought.providers, hooks, config, places, keys),
            sweeping=asyncio.create_task(_swept(places.tool_output), name="sweep"),
        )
        return engine, loaded, self._reload(engine, brought, decision)

    async def _brought(
        self, register: Register, config: Config, written: Sequence[Rule], keys: Keys
    ) -> Brought:
        brought = Brought(
            register=register,
            said=config,
            written=written,
            workspace=self.workspace,
            env=self.env,
            keys=keys,
            home=self.home,
            config_dir=self.places.config,
        )
        await brought.collect()
        return brought

    def _reload(self, engine: Engine, brought: Brought, decision: Decision) -> Reload:
        async def renewed(change: Change) -> Sequence[str]:
            lines = await brought.renew(change)
            engine.config = brought.config
            return lines

        return Reload(
            register=brought.register,
            config=engine.config,
            renewed=renewed,
            directory=self.workspace.directory,
            store=TrustStore(self.places.trust),
            lock=self.env.get("PEGBOARD_TRUST_LOCK"),
            trust=self.options.trust,
            seen=decision,
        )

    async def _snapshots(self, hooks: Hooks, config: Config) -> Snapshots | None:
        spec, place, env = hookspecs.register_snapshots, self.workspace, self.env
        return await hooks.first(spec, config=config, workspace=place, places=self.places, env=env)

    async def _enclosure(
        self, hooks: Hooks, config: Config, private: tuple[Path, ...]
    ) -> "Enclosure | None":
        """Where processes are enclosed, None where the user has not asked for it."""
        if config.sandbox == "off":
            return None
        from pegboard.processes import Site  # nobody else pays for it

        encloser = await hooks.first(hookspecs.register_encloser, hooks=hooks)
        if encloser is None:
            text = f'no plugin encloses as "{config.sandbox}"; enable one, or set sandbox = "off"'
            raise ConfigError(text, key="sandbox")
        place, home = self.workspace, self.home
        site = Site(config=config, workspace=place, places=self.places, home=home, private=private)
        return await encloser.open(site)

    def _private(self, storage: Storage) -> tuple[Path, ...]:
        """What no tool may change unasked, wherever this App has it."""
        files = [self.env.get(name, "") for name in _PRIVATE_FILES]
        named = [self.workspace.directory / name for name in files if name]
        found = [*self.places.kept, *named, *storage.files, *self.workspace.git_dirs]
        return tuple(dict.fromkeys(Path(os.path.realpath(path)) for path in found))

    async def _plugins(self, loaded: LoadedConfig, decision: Decision) -> Register:
        sources = Sources(
            directory=self.workspace.directory,
            places=self.places,
            config=loaded.config,
            env=self.env,
            decision=decision,
            extra=self.options.plugins,
            builtins=self.options.builtins,
            installed=self.options.installed,
            locate=loaded.place,
            on_failure=self._failed,
        )
        register = Register(sources)
        await register.load()
        self.bus.attach(telling(register.hooks))
        return register

    def _failed(self, failure: PluginFailed) -> None:
        self.failures.append(failure)
        self.bus.publish(Event(properties=failure))

    async def _configured(self) -> tuple[LoadedConfig, Decision]:
        """The configuration, read again in full when the project turns out to be trusted."""
        place = self.workspace
        loaded = await self._config(trusted=False)
        lock = self.env.get("PEGBOARD_TRUST_LOCK")
        decision = TrustStore(self.places.trust).decide(
            directory=place.directory,
            worktree=place.worktree,
            config_files=loaded.untrusted,
            plugin_paths=loaded.plugin_paths,
            answer=self.options.trust,
            lock=Path(lock) if lock else None,
        )
        if decision.trusted and loaded.untrusted:
            loaded = await self._config(trusted=decision.files)
            decision = replace(decision, named=loaded.plugin_paths)  # of the files as trusted
        return loaded, decision

    async def _config(self, *, trusted: bool | Mapping[Path, bytes]) -> LoadedConfig:
        return await load_config(
            self.workspace,
            config_dir=self.places.config,
            env=self.env,
            overrides=self.options.config,
            trusted=trusted,
            profile=self.options.profile,
        )


async def _opener(
    register: Register, spec: Callable[[], _Opener | None], does: str
) -> _Opener | Callable[..., NoReturn]:
    """What a plugin answers to this hook, else what says that no plugin does it."""
    found = await register.hooks.first(spec)
    if found is not None:
        return found
    missing = f"no plugin {does}{register.absent(spec)}"

    def refuse(*_: object) -> NoReturn:
        raise ToolError(missing)

    return refuse


async def _budget(register: Register, config: Config) -> OpenBudget:
    """What a plugin keeps runs within their limits with; without any there are no limits.

    :raises ConfigError: when the user has set some all the same.
    """
    found = await register.hooks.first(hookspecs.register_budget)
    if found is None and config.budget != BudgetConfig():
        missing = f"no plugin keeps a budget{register.absent(hookspecs.register_budget)}"
        raise ConfigError(f"{missing}; enable one, or set no limits", key="budget")
    return found or _unlimited


async def _unlimited(*_: object, **__: object) -> Budget:
    return Budget()


async def _swept(outputs: Path) -> None:
    await asyncio.sleep(SWEEP_AFTER_S)
    from pegboard.engine.toolresult import sweep  # nothing of it before the first call

    await sweep(outputs)


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
