"""The other servers of a fleet: their events, their running sessions, and takeovers of sessions."""

import asyncio
import hashlib
import hmac
import logging
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec

from pegboard import App, InvalidInputError, PegboardError
from pegboard.errors import AbortedError, SessionBusyError
from pegboard.schema.event import Event, PermissionAsked, QuestionAsked, SessionStatusChanged
from pegboard_plugins.server import FleetMembership, FleetServer
from pegboard_plugins.server.feed import EventFeed
from pegboard_plugins.server.pool import Pool
from pegboard_plugins.server.wireviews import encode_event

EVENTS_PATH = "/pegboard/fleet/event"
FORWARDED = "x-pegboard-forwarded"
"""The header of a request from another server, which is not passed on once more."""
LOOK_S = 0.25
"""How often a server looks for others that have come or died."""
CONNECT_WITHIN_S = 2.0
TAKEN_OVER_WITHIN_S = 10.0
"""How long the sessions of a dead server may stay claimed: its leases end sooner."""
SHORTEST_SECRET = 32
_RELAYED = ("session.", "message.", "permission.", "question.", "todo.", "command.")
_OF_RUNS = ("session.status", "session.idle", "session.error")
_log = logging.getLogger("pegboard.server")


class _Payload(msgspec.Struct):
    """The type and the properties of an event, decoded from its JSON."""

    type: str
    properties: dict[str, Any]


class _Kind(msgspec.Struct):
    """The type of an event."""

    type: str


class _RelayedFrame(msgspec.Struct):
    """An event that another server of the fleet has sent.

    If it is `known`, it only describes a session that runs already or a request that waits already.
    Such an event is not published.
    """

    payload: msgspec.Raw
    directory: str | None = None
    project: str | None = None
    repeats: bool = False
    known: bool = False


@dataclass(slots=True)
class Elsewhere:
    """The running sessions and waiting requests of a project on other servers."""

    statuses: dict[str, Any] = field(default_factory=dict)
    permissions: tuple[dict[str, Any], ...] = ()
    questions: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True)
class _RelayedRun:
    directory: str
    status: dict[str, Any]


@dataclass(slots=True)
class _WaitingRequest:
    kind: str
    project: str | None
    request: dict[str, Any]


@dataclass(slots=True)
class _Peer:
    """Another server of the fleet, with its running sessions and waiting requests by id."""

    server: FleetServer
    running: dict[str, _RelayedRun] = field(default_factory=dict)
    waiting: dict[str, _WaitingRequest] = field(default_factory=dict)
    after: str | None = None
    relay: asyncio.Task[None] | None = None

    def note(self, frame: _RelayedFrame, kind: str) -> None:
        """Update the running sessions and waiting requests from an event."""
        if kind == "server.connected":
            self.running.clear()
            self.waiting.clear()
        if kind not in _NOTED:
            return
        found = msgspec.json.decode(frame.payload, type=_Payload).properties
        match kind:
            case "session.status" if found["status"]["type"] == "idle":
                self.running.pop(found["sessionID"], None)
            case "session.status":
                place = _RelayedRun(frame.directory or "", found["status"])
                self.running[found["sessionID"]] = place
            case "permission.asked" | "question.asked":
                self.waiting[found["id"]] = _WaitingRequest(kind, frame.project, found)
            case _:
                self.waiting.pop(found["requestID"], None)


_NOTED = frozenset(
    {
        "session.status",
        "permission.asked",
        "permission.replied",
        "question.asked",
        "question.replied",
        "question.rejected",
    }
)


def read_secret(file: Path) -> bytes:
    """Return the secret that the servers of a fleet share.

    :raises InvalidInputError: when the file cannot be read, is not the user's alone, or is short.
    """
    way = f"make it with `(umask 077; openssl rand -hex 32 > {file})`, the same for all servers"
    try:
        mode, secret = file.stat().st_mode, file.read_bytes().strip()
    except OSError as error:
        raise InvalidInputError(
            f"--fleet: cannot read {file}: {error.strerror or error}; {way}"
        ) from error
    if stat.S_IMODE(mode) & 0o077:
        raise InvalidInputError(
            f"--fleet: others than its owner may use {file}; run `chmod 600 {file}`"
        )
    if len(secret) < SHORTEST_SECRET:
        raise InvalidInputError(
            f"--fleet: the secret in {file} is shorter than {SHORTEST_SECRET} characters; {way}"
        )
    return secret


def token_of(secret: bytes, server_id: str) -> str:
    """Return the token with which other servers of the fleet access the server `server_id`."""
    return hmac.new(secret, f"pegboard server {server_id}".encode(), hashlib.sha256).hexdigest()


def known_events(pool: Pool) -> Iterator[tuple[str, str, bytes]]:
    """Yield an event for each running session and waiting request, with directory and project."""
    for member in pool.members():
        app = member.app
        told: list[Any] = [
            *(SessionStatusChanged(id_, status) for id_, status in member.statuses.items()),
            *map(PermissionAsked, app.permissions.pending()),
            *map(QuestionAsked, app.questions.pending()),
        ]
        for each in told:
            event = encode_event(Event(properties=each))
            yield str(app.workspace.directory), app.workspace.project_id, event


class ServerFleet:
    """A server's view of its fleet; it follows the events of the other servers until closed."""

    def __init__(
        self,
        membership: FleetMembership,
        own: FleetServer,
        secret: bytes,
        pool: Pool,
        feed: EventFeed,
    ) -> None:
        self.own = own
        self.membership = membership
        self.client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_WITHIN_S),
            limits=httpx.Limits(max_connections=None),
            trust_env=False,
        )
        self._secret = secret
        self._pool = pool
        self._feed = feed
        self._peers: dict[str, _Peer] = {}
        self._after: dict[str, str | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Follow the events of all other servers; a new server is followed from its start."""
        await self._look(after=None)
        self._start(self._follow(), "follow the fleet")

    async def aclose(self) -> None:
        """Leave the fleet; the other servers of the fleet continue to work."""
        for task in (*self._tasks, *(peer.relay for peer in self._peers.values() if peer.relay)):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.client.aclose()
        with suppress(PegboardError):  # the lease ends by itself
            await self.membership.aclose()

    def headers(self, server: FleetServer) -> dict[str, str]:
        """Return the headers for a request to another server."""
        token = token_of(self._secret, server.id)
        return {"authorization": f"Bearer {token}", FORWARDED: self.own.id}

    def lives(self, server: FleetServer) -> bool:
        """Return whether another server of the fleet was alive at the last check."""
        return server.id in self._peers

    def asked_in(self, request_id: str) -> FleetServer | None:
        """Return the other server with this waiting permission request or question, or None."""
        found = (each.server for each in self._peers.values() if request_id in each.waiting)
        return next(found, None)

    def elsewhere(self, app: App) -> Elsewhere:
        """Return the project's running sessions and waiting requests on other servers."""
        place, project = str(app.workspace.directory), app.workspace.project_id
        running = [
            (id_, each.status)
            for peer in self._peers.values()
            for id_, each in peer.running.items()
            if peer.server.is_worker or each.directory == place
        ]
        waiting = [
            each
            for peer in self._peers.values()
            for each in peer.waiting.values()
            if peer.server.is_worker or each.project == project
        ]
        return Elsewhere(
            statuses=dict(running),
            permissions=tuple(x.request for x in waiting if x.kind == "permission.asked"),
            questions=tuple(x.request for x in waiting if x.kind == "question.asked"),
        )

    def _start(self, work: Any, name: str) -> None:  # noqa: ANN401 - a coroutine
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self) -> None:
        while True:  # until it is cancelled
            await asyncio.sleep(LOOK_S)
            try:
                await self._look(after="0")
            except PegboardError as error:
                _log.warning("the other servers of the fleet cannot be looked up: %s", error)

    async def _look(self, after: str | None) -> None:
        living = {each.id: each for each in await self.membership.others()}
        for server in living.values():
            if server.id not in self._peers:
                # One that was stopped and wakes up has events that clients have already.
                peer = _Peer(server, after=self._after.pop(server.id, after))
                self._peers[server.id] = peer
                peer.relay = asyncio.create_task(self._relay(peer), name=f"relay {server.url}")
        for gone in self._peers.keys() - living.keys():
            peer = self._peers.pop(gone)
            self._after[gone] = peer.after
            if peer.relay is not None:
                peer.relay.cancel()
            _log.info("the server %s has left the fleet", peer.server.url)
            for session_id, place in peer.running.items():
                if peer.server.is_worker:
                    continue  # another worker goes on with it
                self._start(self._take_over(session_id, place), f"take over {session_id}")

    async def _relay(self, peer: _Peer) -> None:
        """Publish the events of another server until the server is gone."""
        while True:
            try:
                async for line in self._lines(peer):
                    self._publish(peer, line)
            except (httpx.HTTPError, msgspec.DecodeError) as error:
                _log.debug("the events of %s break off: %s", peer.server.url, error)
            await asyncio.sleep(LOOK_S)

    async def _lines(self, peer: _Peer) -> AsyncIterator[str]:
        headers = self.headers(peer.server)
        if peer.after is not None:
            headers["last-event-id"] = peer.after
        async with self.client.stream(
            "GET", peer.server.url + EVENTS_PATH, headers=headers
        ) as found:
            found.raise_for_status()
            if peer.after in (None, "0"):
                _log.info("the server %s is in the fleet", peer.server.url)
            async for line in found.aiter_lines():
                yield line

    def _publish(self, peer: _Peer, line: str) -> None:
        name, _, value = line.partition(": ")
        if name == "id":
            peer.after = value
        if name != "data":
            return
        frame = msgspec.json.decode(value.encode(), type=_RelayedFrame)
        kind = msgspec.json.decode(frame.payload, type=_Kind).type
        peer.note(frame, kind)
        if kind == "server.resync":
            self._feed.publish(bytes(frame.payload), directory=None, relayed=True)
        elif kind in _OF_RUNS and self._runs_elsewhere(peer, frame):
            return  # it was stopped, and wakes up
        elif kind.startswith(_RELAYED) and not frame.known:
            self._feed.publish(
                bytes(frame.payload),
                directory=frame.directory,
                project=frame.project,
                repeats=frame.repeats,
                relayed=True,
            )

    def _runs_elsewhere(self, peer: _Peer, frame: _RelayedFrame) -> bool:
        """Return whether a server other than `peer` runs the session of `peer`'s event."""
        found = msgspec.json.decode(frame.payload, type=_Payload).properties.get("sessionID")
        others = (each for each in self._peers.values() if each is not peer)
        return any(found in each.running for each in others) or any(
            found in each.statuses for each in self._pool.members()
        )

    async def _take_over(self, session_id: str, place: _RelayedRun) -> None:
        """Continue a session of a dead server, unless another server does."""
        try:
            if await self.membership.owner(session_id) is not None:
                return
            app = await self._pool.app(Path(place.directory))
            if (await app.session(session_id)).parent_id is not None:
                return  # a subagent's session goes on when its caller asks
            _log.info("going on with session %s of %s", session_id, place.directory)
            with self._pool.hold(app):
                await app.resume(session_id)
        except (SessionBusyError, AbortedError):
            return  # another server goes on with it, or a client has stopped it
        except PegboardError as error:
            _log.warning("session %s of %s does not go on: %s", session_id, place.directory, error)
            known = {"sessionID": session_id}
            directory = Path(place.directory)
            rest = {**known, "status": {"type": "idle"}}
            self._feed.say("session.status", rest, directory=directory)
            self._feed.say("session.idle", known, directory=directory)
