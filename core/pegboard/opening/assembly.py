"""The assembly of an App: the engine, the database, and the objects that plugins make."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pegboard.config.configuration import LoadedConfig
from pegboard.contract import apphooks
from pegboard.contract.plugin import Stash
from pegboard.engine.bus import telling
from pegboard.engine.engine import Engine
from pegboard.engine.models import Models
from pegboard.errors import ConfigError, PegboardError, ToolError
from pegboard.loading.register import Register
from pegboard.opening.options import AppOptions, Opening, open_database
from pegboard.opening.reload import Reload
from pegboard.paths import home_of
from pegboard.providers.keylookup import Keys
from pegboard.providers.spending import Budget, OpenBudget
from pegboard.schema.config import BudgetConfig, Config
from pegboard.storage import Storage
from pegboard.trust.decisions import Decision

if TYPE_CHECKING:
    from pegboard.enclosing import Enclosure

SWEEP_AFTER_S = 2.0
"""Old outputs are removed once the start of an App, and its first request, are over."""
_Opener = TypeVar("_Opener", bound=Callable[..., object])
_PRIVATE_FILES = ("PEGBOARD_CONFIG", "PEGBOARD_TRUST_LOCK")


async def assemble(directory: Path, options: AppOptions) -> tuple[Engine, LoadedConfig, Reload]:
    """Open the database and make the engine, with configuration and plugins; no run starts yet.

    :raises InvalidInputError: when `directory` is not a directory.
    :raises ConfigError: when the configuration is invalid.
    :raises StorageError: when the database cannot be opened.
    """
    opening = Opening.of(directory, options)
    loaded, decision = await opening.configured()
    register = await opening.register(loaded, decision)
    seen = await opening.whole(register, decision)
    decision = seen if seen.trusted else decision
    opening.bus.attach(telling(register.hooks))
    storage = asyncio.ensure_future(  # what takes the disk's time runs beside the rest
        open_database(
            opening.database, register=register, ids=opening.ids, on_commit=opening.bus.publish_all
        )
    )
    try:
        engine = await _engine(opening, loaded.config, decision, register, storage)
        reload = Reload(
            opening=opening,
            engine=engine,
            register=register,
            said=engine.config,
            written=loaded.config.permission,
            seen=seen,
        )
        await reload.collect()
        engine.enclosure = await _enclosure(engine)  # nothing fails after it
    except BaseException:
        with suppress(PegboardError, asyncio.CancelledError):
            await (await storage).aclose()
        raise
    engine.sweeping = asyncio.create_task(_swept(engine.places.tool_output), name="sweep")
    return engine, loaded, reload


async def _engine(
    opening: Opening,
    said: Config,
    decision: Decision,
    register: Register,
    storage: "asyncio.Future[Storage]",
) -> Engine:
    """Return the engine without the parts that `Reload` and `assemble` add later."""
    hooks, env, places, workspace = register.hooks, opening.env, opening.places, opening.workspace
    store = await hooks.first(
        apphooks.register_keystore, env=env, places=places, workspace=workspace
    )
    register.belongings.store = store
    config = await opening.as_plugins_say(hooks, said, decision)
    tools = await register.collect_tools(config)
    keys = Keys(config, env, store, hidden=register.belongings.values)
    snapshots = await hooks.first(
        apphooks.register_snapshots, config=config, workspace=workspace, places=places, env=env
    )
    return Engine(
        workspace=workspace,
        config=config,
        hooks=hooks,
        storage=await storage,
        bus=opening.bus,
        interactive=opening.options.interactive,
        ids=opening.ids,
        tools=tools,
        keys=keys,
        env=env,
        home=home_of(env),
        places=places,
        private=_private(opening, await storage),
        decision=decision,
        stash=Stash(),
        models=Models({}, hooks, config, places, keys),
        open_processes=await _opener(register, apphooks.register_processes, "runs processes"),
        open_files=await _opener(register, apphooks.register_files, "knows files"),
        open_budget=await _budget(register, config),
        snapshots=snapshots,
    )


async def close(engine: Engine, reload: Reload) -> None:
    """End the tools' processes, and then close the plugins, providers and database."""
    await engine.end_processes()
    if engine.enclosure is not None:
        await engine.enclosure.aclose()
    if engine.sweeping is not None:
        engine.sweeping.cancel()
        await asyncio.wait({engine.sweeping})  # without a limit: it ends at its next await
    await reload.register.aclose()
    for name, provider in (*engine.providers.items(), *reload.outdated):
        await engine.hooks.close(provider, f"the provider {name}")
    if engine.snapshots is not None:
        await engine.hooks.close(engine.snapshots, "the snapshots")
    engine.bus.close()
    await engine.storage.aclose()


async def _enclosure(engine: Engine) -> "Enclosure | None":
    """Return the sandbox for tools' processes, or None if the user has not configured a sandbox."""
    if engine.config.sandbox == "off":
        return None
    from pegboard.enclosing import Site  # nobody else pays for it

    encloser = await engine.hooks.first(apphooks.register_encloser, hooks=engine.hooks)
    if encloser is None:
        text = f'no plugin encloses as "{engine.config.sandbox}"'
        raise ConfigError(f'{text}; enable one, or set sandbox = "off"', key="sandbox")
    facts = {name: getattr(engine, name) for name in Site.__struct_fields__}
    return await encloser.open(Site(**facts))


def _private(opening: Opening, storage: Storage) -> tuple[Path, ...]:
    """Return the paths that no tool may change without asking."""
    files = [opening.env.get(name, "") for name in _PRIVATE_FILES]
    named = [opening.workspace.directory / name for name in files if name]
    found = [*opening.places.kept, *named, *storage.files, *opening.workspace.git_dirs]
    return tuple(dict.fromkeys(Path(os.path.realpath(path)) for path in found))


async def _opener(
    register: Register, spec: Callable[[], _Opener | None], does: str
) -> _Opener | Callable[..., NoReturn]:
    """Return what the newest plugin returns from the hook `spec`.

    Without such a plugin, return a function that raises a ToolError. `does` completes its message,
    "no plugin ...".
    """
    found = await register.hooks.first(spec)
    if found is not None:
        return found
    missing = f"no plugin {does}{register.absent(spec)}"

    def refuse(*_: object) -> NoReturn:
        raise ToolError(missing)

    return refuse


async def _budget(register: Register, config: Config) -> OpenBudget:
    """Return a plugin's function that opens budgets; without one, a function without limits.

    :raises ConfigError: when the user has set limits and no plugin enforces them.
    """
    found = await register.hooks.first(apphooks.register_budget)
    if found is None and config.budget != BudgetConfig():
        missing = f"no plugin keeps a budget{register.absent(apphooks.register_budget)}"
        raise ConfigError(f"{missing}; enable one, or set no limits", key="budget")
    return found or _unlimited


async def _unlimited(*_: object, **__: object) -> Budget:
    return Budget()


async def _swept(outputs: Path) -> None:
    await asyncio.sleep(SWEEP_AFTER_S)
    from pegboard.engine.toolresult import sweep  # nothing of it before the first call

    await sweep(outputs)
