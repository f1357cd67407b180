"""The server: the public App over HTTP, in the protocol that clients of OpenCode speak.

Nothing of it but its hooks is loaded before `pegboard serve`.
"""

from collections.abc import Callable, Sequence

from pegboard import Host, hookimpl, hookspec
from pegboard.schema.config import Service


@hookspec("collect")
def register_routes() -> Sequence[object] | None:
    """Routes that the plugin adds to the server, under its own prefix and the server's auth.

    Called once when the server starts. Each answer is a FastAPI `APIRouter`. Collect: a plugin
    that raises is reported and left out.

    Since 0.1.
    """


@hookspec("collect")
def services(app: Host) -> Sequence[Service] | None:
    """The programs that the plugin runs for the project, or would run.

    Called when a client asks for them. Collect: a plugin that raises is reported and left out.

    Since 0.1.
    """


@hookimpl
def register_hooks() -> tuple[Callable[..., object], ...]:
    """Routes and services of plugins."""
    return register_routes, services
