"""What the functions of a built-in plugin get as `plugin`."""

from pathlib import Path
from types import ModuleType

from pegboard import Plugin
from pegboard.schema.config import Config
from pegboard.testing.loneplugin import LonePlugin


def handle(plugin: ModuleType, config: Config | None = None) -> Plugin:
    """The plugin's options and places, as an App with this configuration gives them."""
    return LonePlugin(plugin, config or Config(), Path("/nowhere")).handle
