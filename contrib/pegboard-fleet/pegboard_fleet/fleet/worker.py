"""A fleet worker, which runs the jobs of its pool and queues jobs of dead workers again."""

import asyncio
import fcntl
import os
import shutil
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from pegboard.display import escape_controls
from pegboard.errors import PegboardError, SessionBusyError, StorageError
from pegboard_fleet.attempts import Attempts, Sharing, is_throttled
from pegboard_fleet.batch import MOST_ROUNDS
from pegboard_fleet.fleet.database import FleetDatabase
from pegboard_fleet.fleet.jobs import JobKey, TakenJob, has_ended, withdrawn_of
from pegboard_fleet.fleet.ledger import SharedLedger
from pegboard_fleet.fleet.queue import Queue
from pegboard_fleet.fleet.servers import put_server
from pegboard_fleet.fleet.storage import SharedAccess, SharedDatabase
from pegboard_fleet.fleet.watch import FleetWatch
from pegboard_fleet.folders import Folders

if TYPE_CHECKING:
    from pegboard_plugins.server.jobserver import JobServer

_AGAIN_S = 0.25
_STOP_LIMIT_S = 15.0
"""How long the tools of a worker may take to end that ends itself."""
Ending = Literal["drained", "stopped", "lost", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The settings of a worker; `root` is the parent of the worker's own folder.

    `url` is the address of the database, and `remote` the git repository for checkpoints. `server`
    is the worker's own server, by which clients reach the sessions of its jobs.
    """

    url: str
    pool: str
    concurrency: int
    remote: str
    root: Path
    server: "JobServer | None" = None


class Worker:
    """A worker of a fleet; `own` is the worker's id."""

    def __init__(
        self,
        settings: WorkerSettings,
        database: FleetDatabase,
        queue: Queue,
        shared: SharedDatabase,
        out: TextIO = sys.stderr,
    ) -> None:
        self.own = shared.storage.own
        self._settings = settings
        self._database = database
        self._queue = queue
        self._shared = shared
        self._out = out
        self._root = settings.root / self.own
        self._folders = Folders(self._root)
        self._jobs: dict[JobKey, asyncio.Task[None]] = {}
        self._end: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    async def run(self) -> Ending:
        """Run until a signal, a drain, or a loss of lease or database; return which it was."""
        lock = await asyncio.to_thread(_own_folder, self._root)
        watch = FleetWatch(
            self._settings.url, self._queue, self._shared.storage, self._settings.pool
        )
        await watch.register(self._settings.concurrency)
        if self._settings.server is not None:
            await put_server(self._database, self.own, self._settings.server.own)
        await self._queue.work(
            self.own, self._settings.pool, self._settings.concurrency, self._work
        )
        self._say(f"worker {self.own} takes jobs of the pool {self._settings.pool}")
        watching = asyncio.create_task(self._watch(watch), name="fleet-watch")
        ending = await self._end
        watching.cancel()
        await asyncio.wait({watching})
        await self._stop_jobs()
        if ending == "failed":
            return ending  # nothing can be written, and the lease ends by itself
        if ending != "drained":
            await self._queue.leave()
        with suppress(StorageError):
            await watch.leave()
        os.close(lock)
        await asyncio.to_thread(shutil.rmtree, self._root, ignore_errors=True)
        return ending

    def stop(self) -> None:
        """End this worker; other workers of the fleet continue its jobs."""
        if not self._end.done():
            self._end.set_result("stopped")

    async def _watch(self, watch: FleetWatch) -> None:
        draining: asyncio.Task[None] | None = None
        try:
            while not self._end.done():
                state = await watch.look()
                if state == "draining" and draining is None:
                    self._say("draining: no more jobs; it ends with those that run")
                    draining = asyncio.create_task(self._drain(), name="fleet-drain")
                elif state not in ("working", "draining"):
                    self._lose("it was taken for dead, and others have its jobs")
                await self._stop_withdrawn()
                await asyncio.sleep(_AGAIN_S)
        except StorageError as error:
            self._fail(error)
        finally:
            if draining is not None and not draining.done():
                draining.cancel()

    async def _stop_withdrawn(self) -> None:
        """Cancel the attempts that a command on any machine has stopped."""
        if not self._jobs:
            return
        for key in await withdrawn_of(self._database, tuple(self._jobs)):
            if (task := self._jobs.get(key)) is not None and task.cancel():
                self._say(f"{key}: stopped")

    async def _drain(self) -> None:
        await self._queue.drain()
        if not self._end.done():
            self._end.set_result("drained")

    def _lose(self, reason: str) -> None:
        self._say(f"the worker ends: {reason}")
        if not self._end.done():
            self._end.set_result("lost")

    def _fail(self, error: BaseException) -> None:
        if not self._end.done():
            self._say(f"error: the worker ends: {error}")
            self._end.set_result("failed")

    async def _stop_jobs(self) -> None:
        """Cancel all running attempts, and wait until the attempts' tools have ended."""
        tasks = set(self._jobs.values())
        for task in tasks:
            task.cancel()
        self._shared.storage.is_ending = True
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_LIMIT_S)

    async def _work(self, key: JobKey) -> None:
        """Run an attempt from the queue until it has ended or a command stopped it.

        If the queue delivers an attempt twice, it runs once. If the worker itself ends, this waits
        forever, so that the attempt stays in the queue for another worker.
        """
        if not self._end.done():
            if (task := self._jobs.get(key)) is None:
                task = asyncio.create_task(self._run(key), name=f"fleet-job-{key}")
                self._jobs[key] = task
            await asyncio.wait({task})
            self._jobs.pop(key, None)
            if not task.cancelled():
                if (error := task.exception()) is None:
                    return
                self._fail(error)
            elif not self._end.done():
                return  # a command has stopped it
        await asyncio.Event().wait()  # the process ends, and another worker has the job

    async def _run(self, key: JobKey) -> None:
        earlier = {each for other, each in self._jobs.items() if other[:3] == key[:3]}
        earlier -= {asyncio.current_task()}
        if earlier:
            await asyncio.wait(earlier)  # it was stopped, and still has the session
        while (job := await TakenJob.take(self._database, key, self.own)) is None:
            if await has_ended(self._database, key):
                return
            await asyncio.sleep(_AGAIN_S)  # delivered twice: another worker runs it
        sharing = Sharing(
            remote=self._settings.remote,
            plugins=(SharedAccess(self._shared),),
            env=SharedAccess.env(os.environ),
            serve=None if self._settings.server is None else self._settings.server.add,
        )
        attempts = Attempts(self._root, SharedLedger(job), folders=self._folders, sharing=sharing)
        while True:
            await self._until_free(job)
            attempt = job.attempt
            try:
                result = await attempts.make(attempt)
            except SessionBusyError:  # its old worker was taken for dead, and has woken up
                self._say(f"{key}: it waits for another process, which has its session")
                await asyncio.sleep(_AGAIN_S)
                continue
            again = is_throttled(result) and attempt.round < MOST_ROUNDS
            if not await (job.again() if again else job.end(result)):
                if await has_ended(self._database, key):
                    return  # a command has stopped it
                self._lose(f"another worker has taken over {key}")
                await asyncio.Event().wait()  # until it is cancelled
            reason = escape_controls(result.error.partition("\n")[0])
            self._say(f"{key}: {result.status}" + (reason and f": {reason}"))
            try:
                await attempts.forget(attempt)
            except PegboardError as error:
                self._say(f"{key}: its checkpoints stay in {self._settings.remote}: {error}")
            if not again:
                return

    async def _until_free(self, job: TakenJob) -> None:
        """Wait until the batch's pause is over and no other process runs the attempt's session."""
        session_id = job.state.session_id(job.attempt)
        pause_s = await job.paused_s()
        while pause_s or await self._shared.storage.is_claimed_elsewhere(session_id):
            await asyncio.sleep(pause_s or _AGAIN_S)
            pause_s = await job.paused_s()

    def _say(self, line: str) -> None:
        self._out.write(f"{line}\n")
        self._out.flush()


def _own_folder(folder: Path) -> int:
    """Create a worker's folder and delete folders of dead workers; return the folder's lock."""
    folder.mkdir(parents=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for other in folder.parent.glob(f"{socket.gethostname()}-*/lock"):
        if other.parent == folder:
            continue
        with suppress(OSError):  # a living worker has it, or it is gone
            found = os.open(other, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(other.parent, ignore_errors=True)
            finally:
                os.close(found)
    return lock
