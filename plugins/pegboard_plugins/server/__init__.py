"""The server: the public App over HTTP, in the protocol that clients of OpenCode speak.

Nothing of it but its hooks is loaded before `pegboard serve`.
"""

from types import ModuleType

from pegboard import hookimpl
from pegboard_plugins.server import hookspecs


@hookimpl
def register_hooks() -> tuple[ModuleType, ...]:
    """Routes and services of plugins."""
    return (hookspecs,)
