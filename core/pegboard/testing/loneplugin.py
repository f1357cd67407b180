"""A plugin that is loaded as in an App, with its options and folders, but without other plugins."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from pegboard import Plugin
from pegboard.config.keys import Merged, normalised
from pegboard.config.layer import Layer
from pegboard.hooks.callers import Hooks
from pegboard.loading.candidates import embedded, table_of
from pegboard.loading.discovery import OWN, entry_points
from pegboard.loading.registrant import Belongings, Handle, Registrant, options_of, variable_of
from pegboard.loading.registration import Registry
from pegboard.paths import UserFolders
from pegboard.schema.config import Config, PluginConfig
from pegboard.schema.event import PluginFailed

_PLACES = ("config", "data", "state", "cache")
Settings = Config | Mapping[str, object] | None
"""A configuration as a `Config`, or in the form of `pegboard.toml`."""


def config_of(settings: Settings) -> Config:
    """Return the configuration for settings that a test gives.

    :raises ConfigError: for a value of the wrong type.
    """
    if settings is None or isinstance(settings, Config):
        return settings or Config()
    layer = Layer(name="config", value=settings, syntax="pegboard")
    merged = Merged()
    folder = Path.cwd()
    merged.lay(layer, normalised(layer, dict(settings), home=Path.home(), folder=folder))
    return merged.config()


def with_own_table(plugin: object, tables: Collection[str]) -> Registrant:
    """Return the record of a plugin that a program passes to an App, with its settings table."""
    builtin = {each.name for each in entry_points() if each.distribution == OWN}
    found = embedded(plugin, tables)
    found.table = table_of(found, tables, builtin)
    return found


class LonePlugin:
    """A plugin that is loaded without any other plugin.

    `name` is the name in findings: the name of its entry point if it has one, as in an App.
    `config` is the configuration, with the options that the test sets for the plugin. `flaws` are
    the faults found in its hooks, and the attribute `options` describes faults in its options.
    """

    def __init__(
        self,
        plugin: object,
        config: Settings,
        folder: Path,
        *,
        options: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        config = config_of(config)
        registrant = with_own_table(plugin, config.plugins)
        self.name, table = registrant.name, registrant.table
        self.places = UserFolders.of({}, **{each: folder / each for each in _PLACES})
        if options is not None:
            own = replace(config.plugins.get(table, PluginConfig()), options=dict(options))
            config = replace(config, plugins={**config.plugins, table: own})
        self.config = config
        env = {variable_of(self.name, name): value for name, value in (secrets or {}).items()}
        self.belongings = Belongings(self.places, env)
        judged = options_of(plugin, config.plugins.get(table, PluginConfig()).options)
        self.handle: Plugin = Handle(self.name, self.belongings, judged.value)
        registry = Registry(config)
        registrant.key, registrant.plugin, registrant.handle = "p", plugin, self.handle
        registry.bring(registrant)
        registry.add(registrant)
        found = registry.implementations()
        self.options = tuple(f"{each.key}: {each.text}" for each in judged.flaws)
        self.flaws = tuple(each for each in registry.problems if each.kind != "refusal")
        self._implementations = {
            hook: tuple(each for each in those if not each.refusal) for hook, those in found.items()
        }

    def has(self, hook: str) -> bool:
        """Return whether the plugin has a usable function for the hook."""
        return bool(self._implementations.get(hook))

    def hooks(self, on_failure: Callable[[PluginFailed], None]) -> Hooks:
        """Return an object that calls the plugin's hooks."""
        return Hooks(self._implementations, on_failure=on_failure)


@asynccontextmanager
async def lone_plugin(
    plugin: object,
    config: Settings,
    **given: Any,  # noqa: ANN401 - options and secrets
) -> AsyncIterator[LonePlugin]:
    """Yield a `LonePlugin` with folders that are deleted after the block."""
    folder = await asyncio.to_thread(TemporaryDirectory, prefix="pegboard-check-")
    try:
        alone = LonePlugin(plugin, config, Path(folder.name), **given)
        yield alone
        await alone.belongings.aclose()
    finally:
        await asyncio.to_thread(folder.cleanup)
