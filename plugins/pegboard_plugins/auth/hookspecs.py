"""The hook that `pegboard auth` brings."""

from collections.abc import Sequence

from pegboard import hookspec
from pegboard.schema.config import Config
from pegboard_plugins.auth.signing import Login


@hookspec("collect")
def register_logins(config: Config) -> Sequence[Login] | None:
    """Ways to sign in with providers that take more than a key.

    Called when the App opens, and for `pegboard auth login`. Collect: a plugin that raises is
    reported and left out.

    - config: the merged configuration; the plugin's own is under `config.plugins[name]`.

    Since 0.1.
    """
