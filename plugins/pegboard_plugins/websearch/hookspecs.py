"""The hook that the search tools bring."""

from collections.abc import Sequence

from pegboard import hookspec
from pegboard.schema.config import Config
from pegboard_plugins.websearch.backends import SearchBackend


@hookspec("collect")
def register_search_backends(config: Config) -> Sequence[SearchBackend] | None:
    """Ways to search the web, for the tools `websearch` and `codesearch`.

    Called once when the App opens, before `register_tools`; without any answer the tools are
    not offered. The newest backend acts, unless `plugins.websearch.options.backend` names
    another. Collect: a plugin that raises is reported and left out.

    - config: the merged configuration; the plugin's own is under `config.plugins[name]`.

    Since 0.1.
    """
