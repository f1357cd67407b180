"""The server: the public App over HTTP, in the protocol of OpenCode's clients.

Only its hooks are loaded before `pegboard serve` runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pegboard import Host, PegboardError, hookimpl, hookspec
from pegboard.schema.config import Service

if TYPE_CHECKING:
    from pegboard import App


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetServer:
    """A server of a fleet: its id, the name of its machine, and the address on which it listens.

    A server that `is_worker` runs the sessions of jobs. When it dies, other workers continue them.
    """

    id: str
    host: str
    url: str
    is_worker: bool = False


class FleetMembership(Protocol):
    """The membership of a server in a fleet of servers that share one database of sessions."""

    async def add(self, app: "App") -> None:
        """Record that this server runs the sessions that the App claims.

        :raises PegboardError: when the record cannot be written.
        """

    async def owner(self, session_id: str) -> FleetServer | None:
        """Return the other living server that runs the session, or None if no other server does.

        :raises PegboardError: when the database cannot be read.
        """

    async def others(self) -> Sequence[FleetServer]:
        """Return the other living servers.

        :raises PegboardError: when the database cannot be read.
        """

    async def aclose(self) -> None:
        """Remove this server from the fleet of servers."""


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
    """Return the programs that the plugin runs for the project, also those that do not run now.

    Called when a client asks for them. Collect: a plugin that raises is reported and left out.

    The example of `register_routes` contains an implementation of this hook.
    """


@hookspec("first", raises=(PegboardError,), since="0.1")
def service_action(
    app: Host, kind: str, name: str, action: str, data: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Perform an action on a service of the plugin, and return the data for the client.

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


@hookspec("first", raises=(PegboardError,), since="0.1")
def join_fleet(server: FleetServer) -> FleetMembership | None:
    """Join the servers that share the database of sessions.

    Called once when `pegboard serve --fleet` starts, before it takes requests. The server passes
    requests about a session on to the server that runs it, publishes the events of other servers,
    and continues the sessions of dead servers. A `PegboardError` ends the start. First: a
    plugin that raises another error is reported, and the next one is asked.

    - server: this server. Other servers get it from `owner` and `others` of their membership.

    ```python
    from collections.abc import Sequence

    from pegboard import App, hookimpl
    from pegboard_plugins.server import FleetMembership, FleetServer


    class Alone:
        async def add(self, app: App) -> None:
            pass

        async def owner(self, session_id: str) -> FleetServer | None:
            return None

        async def others(self) -> Sequence[FleetServer]:
            return ()

        async def aclose(self) -> None:
            pass


    @hookimpl(optionalhook=True)
    async def join_fleet(server: FleetServer) -> FleetMembership | None:
        return Alone()
    ```
    """


@hookimpl
def register_hooks() -> tuple[Callable[..., object], ...]:
    """Register the hooks with which plugins add routes, services and fleets of servers."""
    return register_routes, services, service_action, join_fleet
