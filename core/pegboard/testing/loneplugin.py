"""One plugin, registered as an App does it: with its options, its folders and nobody else."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pegboard.contract.plugin import Plugin
from pegboard.hooks.callers import Hooks
from pegboard.loading.candidates import embedded_name, entry_name
from pegboard.loading.handle import Belongings, Handle
from pegboard.loading.options import options_of
from pegboard.loading.registration import Registrant, Registry
from pegboard.paths import Places
from pegboard.schema.config import Config, PluginConfig
from pegboard.schema.event import PluginFailed

_PLACES = ("config", "data", "state", "cache")


class LonePlugin:
    """The plugin as its hooks see it; `flaws` is what is wrong with its hooks and options.

    `name` is what findings call it; its settings stand under the name of its entry point, if it
    has one, as they do in an App.
    """

    def __init__(self, plugin: object, config: Config, folder: Path) -> None:
        self.name = embedded_name(plugin)
        self.places = Places.of({}, **{each: folder / each for each in _PLACES})
        self.belongings = Belongings(self.places)
        table = entry_name(plugin) or self.name
        judged = options_of(plugin, config.plugins.get(table, PluginConfig()).options)
        handle = Handle(table, self.belongings)
        handle.options = judged.value
        self.handle: Plugin = handle
        registry = Registry(config)
        registrant = Registrant(
            key="p", name=self.name, origin="embedded", plugin=plugin, table=table, handle=handle
        )
        registry.bring(registrant)
        registry.add(registrant)
        found = registry.implementations()
        self.options = tuple(f"{each.key}: {each.text}" for each in judged.flaws)
        self.flaws = tuple(each.text for each in registry.problems if each.kind != "refusal")
        self._implementations = {
            hook: tuple(each for each in those if not each.refusal) for hook, those in found.items()
        }

    def has(self, hook: str) -> bool:
        """Whether the plugin has a function for the hook that can be called."""
        return bool(self._implementations.get(hook))

    def hooks(self, on_failure: Callable[[PluginFailed], None]) -> Hooks:
        """Callers of its hooks."""
        return Hooks(self._implementations, on_failure=on_failure)


@asynccontextmanager
async def lone_plugin(plugin: object, config: Config | None) -> AsyncIterator[LonePlugin]:
    """The plugin with folders that are there while the block lasts."""
    folder = await asyncio.to_thread(TemporaryDirectory, prefix="pegboard-check-")
    try:
        alone = LonePlugin(plugin, config or Config(), Path(folder.name))
        yield alone
        await alone.belongings.aclose()
    finally:
        await asyncio.to_thread(folder.cleanup)
