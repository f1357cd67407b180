"""The server: the public App over HTTP, in the protocol that clients of OpenCode speak.

Nothing of it but its hooks is loaded before `pegboard serve`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pegboard import Host, PegboardError, hookimpl, hookspec
from pegboard.schema.config import Service


@hookspec("collect", since="0.1")
def register_routes() -> Sequence[object] | None:
    """Return routes for the server, under the plugin's own prefix and the server's authentication.

    Called once when the server starts. Each answer is a FastAPI `APIRouter`. Collect: a plugin
    that raises is reported and left out.

    ```python
    from pegboard import Host, hookimpl
    from pegboard.schema.config import Service


    @hookimpl(optionalhook=True)
    def register_routes() -> tuple[object, ...]:
        from fastapi import APIRouter

        router = APIRouter()

        @router.get("/hello")
        async def hello() -> str:
            return "Good day!"

        return (router,)


    @hookimpl(optionalhook=True)
    async def services(app: Host) -> tuple[Service, ...]:
        return ()
    ```
    """


@hookspec("collect", since="0.1")
def services(app: Host) -> Sequence[Service] | None:
    """Return the programs that the plugin runs for the project, or would run.

    Called when a client asks for them. Collect: a plugin that raises is reported and left out.

    The example of `register_routes` has one.
    """


@hookspec("first", raises=(PegboardError,), since="0.1")
def service_action(
    app: Host, kind: str, name: str, action: str, data: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Let a service of the plugin do something, and return the facts for the client.

    Called when a client of the server asks for it; return `None` for a service of another plugin.
    A `PegboardError` becomes the client's error. An implementation that waits for a connection or
    a sign-in has a time limit of its own: `@hookimpl(timeout_s=300)`. First: a plugin that raises
    another error is reported, and the next one is asked.

    - kind, name: those of the `Service`; the name is "" for all of them.
    - action: for the kind `mcp` one of `connect`, `disconnect`, `auth` (return `authorizationUrl`
      and `oauthState`), `auth_callback`, `authenticate`, `logout`, `add` and `resources`.
    - data: what the client has sent, such as the `code` of `auth_callback`.

    ```python
    from collections.abc import Mapping
    from typing import Any

    from pegboard import hookimpl


    @hookimpl(optionalhook=True)
    async def service_action(kind: str, name: str, action: str) -> Mapping[str, Any] | None:
        if (kind, name, action) != ("mcp", "clock", "connect"):
            return None
        return {}
    ```
    """


@hookimpl
def register_hooks() -> tuple[Callable[..., object], ...]:
    """Routes, services and their actions of plugins."""
    return register_routes, services, service_action
