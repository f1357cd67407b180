"""One App per directory in use; idle Apps are closed after a while."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from pegboard import App, AppOptions, PegboardError
from pegboard.app import Decision
from pegboard.schema.event import Event, SessionStatusChanged
from pegboard.schema.session import Idle, SessionStatus
from pegboard_plugins.server.deltas import JoinedDeltas
from pegboard_plugins.server.feed import EventFeed
from pegboard_plugins.server.filesearch import no_system
from pegboard_plugins.server.repeats import Repeats
from pegboard_plugins.server.running import RunningSessions
from pegboard_plugins.server.wireviews import encode_event, wire_event
from pegboard_plugins.shared.frontend import follow_folder, left_out, settings_warnings

IDLE_S = 900.0
"""An App that is unused for this long is closed; the next request opens it again."""
SWEEP_S = 60.0
MOST_APPS = 64
QUEUED_EVENTS = 20_000
"""Of one App, for the one task that hands them on."""
_log = logging.getLogger("pegboard.server")


@dataclass(slots=True, kw_only=True)
class Member:
    """An open App, the task that forwards its events, and its running sessions.

    `users` counts the requests and turns that use the App. An App is `outdated` if the user's
    settings have changed since it was opened. If an App is `adopted`, the code that opened it also
    closes it.
    """

    app: App
    relay: asyncio.Task[None]
    used_at: float
    users: int = 0
    outdated: bool = False
    adopted: bool = False
    statuses: dict[str, SessionStatus] = field(default_factory=dict)

    @property
    def rests(self) -> bool:
        """Whether the App is idle: no request, no running turn, no waiting question."""
        return not (
            self.users
            or self.statuses
            or self.app.permissions.pending()
            or self.app.questions.pending()
        )


class Pool:
    """The Apps that the server has open, by directory, with the tasks that forward their events.

    `on_open` is called with each App before its first use. `running` records the running sessions
    in files; with None, they are not recorded.
    """

    def __init__(
        self, options: Callable[[], AppOptions], feed: EventFeed, running: RunningSessions | None
    ) -> None:
        self.on_open: Callable[[App], Awaitable[None]] | None = None
        self._options = options
        self._feed = feed
        self._running = running
        self._opening: dict[Path, asyncio.Task[Member]] = {}
        self._renewing: set[asyncio.Task[None]] = set()
        self._trusted: dict[Path, Decision] = {}

    async def app(self, directory: Path) -> App:
        """Return the App of a directory, opened at its first use.

        :raises InvalidInputError: when the path is not a directory.
        :raises PermissionDeniedError: when the directory belongs to the system.
        :raises ConfigError: when its configuration cannot be used.
        """
        place = no_system(await asyncio.to_thread(_resolve, directory))
        await self._drop_old(place)
        task = self._opening.get(place)
        if task is None:
            task = asyncio.create_task(self._open(place), name=f"open {place}")
            self._opening[place] = task
        try:
            # Without a limit of its own: the opening's parts have theirs.
            member = await asyncio.shield(task)
        except BaseException:
            if task.done() and self._opening.get(place) is task:
                del self._opening[place]
            raise
        member.used_at = time.monotonic()
        return member.app

    async def adopt(self, app: App) -> None:
        """Add an App that other code, such as the CLI, has opened and will close."""
        place = app.workspace.directory
        task = asyncio.create_task(self._joined(app), name=f"adopt {place}")
        self._opening[place] = task
        member = await task
        member.adopted = True

        def forget(_: "asyncio.Task[None]") -> None:
            if self._opening.get(place) is task:
                del self._opening[place]

        member.relay.add_done_callback(forget)

    def is_adopted(self, app: App) -> bool:
        """Return whether other code than this pool has opened the App."""
        return any(member.app is app and member.adopted for member in self.members())

    def members(self) -> tuple[Member, ...]:
        """Return the open Apps, with the tasks that forward their events."""
        done = (task for task in self._opening.values() if task.done() and not task.cancelled())
        return tuple(task.result() for task in done if task.exception() is None)

    def member(self, app: App) -> Member:
        """Return the pool's entry for an open App."""
        return next(member for member in self.members() if member.app is app)

    @contextmanager
    def hold(self, app: App) -> Iterator[None]:
        """Keep an App open within the `with` block, unless its directory is closed on purpose."""
        member = next((member for member in self.members() if member.app is app), None)
        if member is None:
            yield
            return
        member.users += 1
        try:
            yield
        finally:
            member.users -= 1
            if member.outdated and member.rests:
                task = asyncio.create_task(self._drop_old(app.workspace.directory), name="renew")
                self._renewing.add(task)
                task.add_done_callback(self._renewing.discard)

    def trust(self, directory: Path, decision: Decision) -> None:
        """Store the decision to trust a directory's code, for the next time that its App is opened.

        If a file of the code changes, the user is asked again.
        """
        self._trusted[directory] = decision

    async def close(self, directory: Path) -> None:
        """Stop the work in a directory, and close the directory's App if the App is open."""
        task = self._opening.pop(directory, None)
        if task is None:
            return
        with suppress(PegboardError):
            member = await task
            await member.app.aclose()
            await member.relay  # it ends with the App, which closes its subscriptions

    async def renew(self) -> None:
        """Close each App as soon as it is idle, so that its next use reads the current files."""
        for member in self.members():
            member.outdated = True
            await self._drop_old(member.app.workspace.directory)

    async def _drop_old(self, directory: Path) -> None:
        """Close the directory's App if the App is idle and outdated."""
        task = self._opening.get(directory)
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return
        member = task.result()
        if member.outdated and member.rests:
            await self.close(directory)

    async def sweep(self) -> None:
        """Close Apps that have been idle for long, until the calling task is cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            for member in self._stale():
                # While another was closed a request may have come.
                if any(member is each for each in self._stale()):
                    await self.close(member.app.workspace.directory)

    async def abort_all(self) -> None:
        """Stop all running turns."""
        running = ((member.app, name) for member in self.members() for name in member.statuses)
        await asyncio.gather(*[app.abort(name) for app, name in running])

    async def aclose(self) -> None:
        """Close all Apps concurrently."""
        await asyncio.gather(*(self.close(directory) for directory in tuple(self._opening)))
        await asyncio.gather(*self._renewing)

    def _stale(self) -> list[Member]:
        """Return the Apps to close: Apps unused for long, or the oldest if too many are open."""
        resting = [
            member
            for member in self.members()
            if member.rests and not self._feed.is_heard(member.app.workspace.directory)
        ]
        resting.sort(key=lambda member: member.used_at)
        limit = time.monotonic() - IDLE_S
        surplus = max(0, len(self._opening) - MOST_APPS)
        return [
            member
            for place, member in enumerate(resting)
            if place < surplus or member.used_at < limit
        ]

    async def _open(self, directory: Path) -> Member:
        options = self._options()
        if directory in self._trusted and options.trust is None:
            options = replace(options, trust=self._trusted[directory])
        app = await App.open(directory, options)
        if self.on_open is not None:
            try:
                await self.on_open(app)
            except BaseException:
                await app.aclose()
                raise
        followed = await follow_folder(app)
        member = await self._joined(app)
        missing = left_out(app, names=len(app.untrusted))
        for warning in (
            *filter(None, [followed]),
            *missing.lines,
            *app.storage.warnings,
            *(each for each in settings_warnings(app) if each not in missing.details),
            *missing.others,
        ):
            _log.warning("%s", warning)
        return member

    async def _joined(self, app: App) -> Member:
        statuses: dict[str, SessionStatus] = {}
        work = self._relay(app, statuses)
        relay = asyncio.create_task(work, name=f"relay {app.workspace.directory}")
        await asyncio.sleep(0)  # the relay listens before anybody uses the App
        return Member(app=app, relay=relay, used_at=time.monotonic(), statuses=statuses)

    async def _relay(self, app: App, statuses: dict[str, SessionStatus]) -> None:
        """Forward the App's events until the App is closed."""
        place = str(app.workspace.directory)
        project = app.workspace.project_id
        repeats = Repeats()
        async with app.subscribe(limit=QUEUED_EVENTS) as events:
            missed = 0
            deltas = JoinedDeltas(events, partial(self._feed.around, place))
            while batch := await deltas.batch():
                if events.missed > missed:
                    missed = events.missed
                    self._feed.say("server.resync", {"missed": missed}, directory=Path(place))
                for event in batch:
                    _note(event, statuses)
                if app.config.resume_on_restart and self._running is not None:
                    await self._running.note(batch, app.workspace.directory)
                shown = self._frames(batch, repeats, place)
                await self._feed.publish_all(shown, directory=place, project=project)

    def _frames(
        self, batch: Iterable[Event], repeats: Repeats, directory: str
    ) -> Iterator[tuple[bytes, bool]]:
        for event in batch:
            yield self._json(event), False
            repeated = repeats.take(event)
            if repeated is not None and self._feed.hears_repeats(directory):
                yield self._json(repeated), True

    def _json(self, event: Event) -> bytes:
        """Return the event as JSON, with an id also for events that are not stored."""
        body = encode_event(wire_event(event))
        if event.seq:
            return body
        return b'{"id":"%b",%b' % (self._feed.event_id().encode(), body[1:])


def _note(event: Event, statuses: dict[str, SessionStatus]) -> None:
    match event.properties:
        case SessionStatusChanged(session_id=session_id, status=Idle()):
            statuses.pop(session_id, None)
        case SessionStatusChanged(session_id=session_id, status=status):
            statuses[session_id] = status


def _resolve(directory: Path) -> Path:
    try:
        return directory.expanduser().resolve()
    except (OSError, ValueError, RuntimeError):
        return directory
