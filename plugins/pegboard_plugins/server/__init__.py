"""The server: the public App over HTTP, in the protocol that clients of OpenCode speak.

Nothing of it but its hooks is loaded before `pegboard serve`.
"""

from collections.abc import Callable, Sequence

from pegboard import Host, hookimpl, hookspec
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


@hookimpl
def register_hooks() -> tuple[Callable[..., object], ...]:
    """Routes and services of plugins."""
    return register_routes, services
