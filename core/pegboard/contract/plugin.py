"""What a plugin has of its own: its options, its places, its log, its secrets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from logging import Logger, LoggerAdapter

    import httpx

Secret = Annotated[str, msgspec.Meta(extra={"secret": True})]
"""The type of an option that nobody may see: it is masked wherever settings are shown or logged.

pydantic's `SecretStr` is one, too, and a dataclass' `field(metadata={"secret": True})`.
"""


class Plugin(Protocol):
    """The plugin whose code runs: the argument `plugin` of a hook, `context.plugin` of a tool."""

    @property
    def name(self) -> str:
        """Its name, as the user's configuration has it."""
        ...

    @property
    def options(self) -> Any:  # noqa: ANN401 - of the class that the plugin declares
        """The user's `[plugins.NAME.options]`, as the class that the plugin declares.

        A plugin declares it as its attribute `options`: a pydantic model, a msgspec struct or a
        dataclass. Without one it is the table itself.
        """
        ...

    @property
    def data_dir(self) -> Path:
        """A folder for what must stay, private to the user; it is made when it is asked for."""
        ...

    @property
    def cache_dir(self) -> Path:
        """A folder for what can be made again; it is made when it is asked for."""
        ...

    @property
    def logger(self) -> "LoggerAdapter[Logger]":
        """A log whose lines have the plugin's name; secrets are left out of them."""
        ...

    @property
    def http(self) -> "httpx.AsyncClient":
        """An HTTP client that all plugins of the App share; the App closes it."""
        ...

    def secret(self, name: str) -> str | None:
        """A secret that the user has set for the plugin, None if there is none.

        It is `PEGBOARD_SECRET_PLUGIN_NAME` of the environment, else what is stored in the user's
        data folder.
        """
        ...
