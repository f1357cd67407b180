"""The journal of a batch: an append-only file of starts, payments and results.

Each line is written to disk before the step that the line describes. A batch can therefore continue
from its journal after its process was killed at any moment. Only one process at a time may open the
journal.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from pegboard.errors import InvalidInputError
from pegboard_fleet.jobs import Job

JOURNAL, PID = "journal.jsonl", "pid"
"""The files of a batch: its journal, and the id of the process that holds it."""
Status = Literal["done", "failed", "error_infra", "stopped_budget", "timed_out", "parked"]
"""The ways in which a job ends; `error_infra` blames the provider, the machine or the setup."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a batch; `repeat` is the number of attempts at each job.

    With `ask`, permission requests and questions wait until a user answers them in a client that is
    connected to a server of the fleet.
    """

    model: str | None = None
    agent: str | None = None
    concurrency: int = 4
    repeat: int = 1
    budget_usd: float | None = None
    job_budget_usd: float | None = None
    time_limit_s: float = 1800.0
    pause_s: float = 60.0
    auto: bool = False
    ask: bool = False
    sandbox: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job's check command: its exit code and the last part of its output."""

    exit: int
    output_tail: str


class JobResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of an attempt, a line of the results file; times are seconds since 1970.

    `refused` is the HTTP status with which the provider refused the last request, or 0.
    `worker` is `HOST:PID`, the machine and process that ended the attempt.
    """

    id: str
    attempt: int
    status: Status
    session_id: str = ""
    answer: str = ""
    patch: str = ""
    check: Check | None = None
    error: str = ""
    refused: int = 0
    cost_usd: float | None = 0.0
    tokens: int = 0
    steps: int = 0
    started: float = 0.0
    ended: float = 0.0
    worker: str = ""
    model: str = ""
    pegboard: str = ""
    labels: tuple[str, ...] = ()
    meta: dict[str, object] = {}


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag="batch"):
    """The first line of a journal: the batch's id, its settings and its jobs."""

    id: str
    settings: Settings
    jobs: tuple[Job, ...]


class Raised(msgspec.Struct, frozen=True, kw_only=True, tag="budget"):
    """The journal line for a changed money limit of the batch."""

    budget_usd: float


class Began(msgspec.Struct, frozen=True, kw_only=True, tag="began"):
    """The journal line for a start or continuation; `steps` counts the session's steps so far."""

    id: str
    attempt: int
    round: int = 0
    steps: int = 0


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The journal line for a prepared folder of an attempt; `base` is the commit in the folder."""

    id: str
    attempt: int
    round: int = 0
    base: str = ""


class Held(msgspec.Struct, frozen=True, kw_only=True, tag="held"):
    """The journal line for a request about to be sent; `usd` is the request's highest cost."""

    number: int
    usd: float


class Paid(msgspec.Struct, frozen=True, kw_only=True, tag="paid"):
    """The journal line for a completed request; `usd` is the request's cost."""

    number: int
    usd: float


class AttemptEnded(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """The journal line for the end of an attempt."""

    result: JobResult


class Again(msgspec.Struct, frozen=True, kw_only=True, tag="again"):
    """The journal line for the decision to repeat an ended attempt in a new session."""

    id: str
    attempt: int


Entry = Opened | Raised | Began | Ready | Held | Paid | AttemptEnded | Again


class Journal:
    """The journal file of a batch, which is open and locked for this process."""

    def __init__(self, folder: Path, file: int) -> None:
        self.folder = folder
        self._file = file
        (folder / PID).write_text(str(os.getpid()))

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Create the journal of a new batch in `folder`.

        :raises InvalidInputError: when the folder has a journal already, or cannot be created.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            file = os.open(folder / JOURNAL, flags, 0o600)
        except FileExistsError as error:
            way = f"`pegboard batch resume {folder}` goes on with it; --out names another folder"
            raise InvalidInputError(f"{folder} has a batch already: {way}") from error
        except OSError as error:
            raise InvalidInputError(f"cannot make {folder}: {error.strerror or error}") from error
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return cls(folder, file)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the journal of a batch; remove a last line that a killed process left incomplete.

        :raises InvalidInputError: when there is no journal, or another process has locked it.
        """
        try:
            file = os.open(folder / JOURNAL, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise InvalidInputError(f"{folder} has no batch: {error.strerror or error}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(file)
            way = f"`pegboard batch status {folder}` shows it, `pegboard batch stop` stops it"
            raise InvalidInputError(f"the batch of {folder} runs: {way}") from error
        content = (folder / JOURNAL).read_bytes()
        os.ftruncate(file, content.rfind(b"\n") + 1)
        return cls(folder, file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        (self.folder / PID).unlink(missing_ok=True)
        os.close(self._file)

    def write(self, *entries: Entry) -> None:
        """Append entries, and return when the entries are on disk; blocks the thread.

        :raises OSError: when the file cannot be written.
        """
        whole = b"".join(msgspec.json.encode(each) + b"\n" for each in entries)
        while whole:
            whole = whole[os.write(self._file, whole) :]
        os.fdatasync(self._file)


def entries_of(folder: Path) -> Iterator[Entry]:
    """Yield the entries of a journal; skip an incomplete last line. Blocks the thread.

    :raises InvalidInputError: when there is no journal, or a line is damaged.
    """
    file = folder / JOURNAL
    try:
        lines = file.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise InvalidInputError(f"{folder} has no batch: {error.strerror or error}") from error
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            return  # a kill cut it off, or it is being written
        try:
            yield msgspec.json.decode(line, type=Entry)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise InvalidInputError(f"{file}, line {number}: damaged: {error}") from error
