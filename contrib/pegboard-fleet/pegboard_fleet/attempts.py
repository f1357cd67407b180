"""An attempt at a job: its folder, its session, its check command, and the cause of its failure."""

import asyncio
import os
import shutil
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pegboard import App, AppOptions, Prompt, __version__
from pegboard.errors import NotFoundError, PegboardError, SessionBusyError
from pegboard.processes import run_program
from pegboard.schema.message import (
    AbortedFailure,
    APIFailure,
    AssistantMessage,
    BudgetFailure,
    Failure,
    PluginFailure,
    ProviderAuthFailure,
    Turn,
    UnknownFailure,
)
from pegboard.schema.session import Session
from pegboard_fleet.checkpoints import Checkpoints
from pegboard_fleet.folders import (
    OUTPUT_LIMIT_BYTES,
    OUTPUT_TAIL_BYTES,
    Folders,
    SetupError,
    ending,
)
from pegboard_fleet.journal import Began, Check, JobResult, Ready, Status
from pegboard_fleet.money import Ledger, Meter
from pegboard_fleet.results import DATA
from pegboard_fleet.state import Attempt
from pegboard_plugins.shared.frontend import RunRules

_THROTTLES = (429, 503, 529)
COMMAND_LIMIT_S = 1800.0
"""The longest setup or check."""
_INFRA = (APIFailure, ProviderAuthFailure, UnknownFailure, PluginFailure)
"""Failures of the provider or the machine; any other one is the model's, or a limit's."""
MOVED = (
    "The machine that you worked on was lost, and you go on in a new folder. It is as it was "
    "before your last answer: what the calls of that answer changed is gone, also where they "
    "ended well, and so are files that git ignores. Look at what is there, then "
    "go on with the task."
)
"""The message to a model whose session goes on elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """The resources of attempts that another worker may continue, on another machine.

    `remote` is a bare repository for the checkpoints of folders. `plugins` and `env` give the App
    of each attempt access to the fleet's database. `serve` lets servers reach the sessions of an
    App.
    """

    remote: str
    plugins: tuple[object, ...]
    env: Mapping[str, str]
    serve: Callable[[App], Awaitable[None]] | None = None


class Attempts:
    """The runner of a batch's attempts; each attempt has its own App and data below `root`."""

    def __init__(
        self, root: Path, ledger: Ledger, *, folders: Folders, sharing: Sharing | None = None
    ) -> None:
        self._root = root.absolute()
        self._ledger = ledger
        self._folders = folders
        self._sharing = sharing

    async def make(self, attempt: Attempt) -> JobResult:
        """Run or continue an attempt, and return its result.

        If the caller is cancelled, the session's turn ends; the next call continues the attempt.

        :raises SessionBusyError: when another worker runs the session; a later call may succeed.
        """
        started = time.time()
        try:
            return await self._made(attempt, started)
        except SessionBusyError as error:
            if self._sharing is not None:
                raise
            return self._result(attempt, started, "error_infra", error=str(error))
        except (PegboardError, OSError, ValueError) as error:
            return self._result(attempt, started, "error_infra", error=str(error))

    async def _made(self, attempt: Attempt, started: float) -> JobResult:
        at = {"id": attempt.job.id, "attempt": attempt.number, "round": attempt.round}
        base = attempt.base
        if base is None:
            base = await self._folders.make(attempt)
        session_id = self._ledger.state.session_id(attempt)
        saved = None
        if self._sharing is not None:
            saved = Checkpoints(self._folders, self._sharing.remote, attempt, session_id, base)
        async with App.open(self._folders.of(attempt), self._options(saved)) as app:
            for each in self._rules:
                each.check(app)
            if self._sharing is not None and self._sharing.serve is not None:
                await self._sharing.serve(app)
            if attempt.base is None:
                await self._set_up(app, attempt)
                await self._ledger.note(Ready(base=base, **at))  # type: ignore[arg-type]
            session = await _session(app, session_id, attempt.job.id)
            steps = len(await app.list_turns(session.id))
            if saved is not None and steps:
                await saved.restore()
            await self._ledger.note(Began(steps=steps, **at))  # type: ignore[arg-type]
            if attempt.is_stuck:
                text = "it was begun four times and never came further"
                return self._result(attempt, started, "parked", error=text)
            turn = await self._answered(app, session, attempt)
            status, error = _outcome(turn)
            check = None
            if status == "done" and attempt.job.check:
                check = await self._command(app, attempt, attempt.job.check)
                status = "failed" if check.exit else "done"
            patch = await self._folders.patch(attempt, base)
            after, turns = await app.session(session.id), await app.list_turns(session.id)
        return self._result(
            attempt,
            started,
            status,
            error=error,
            refused=_status_of(turn),
            patch=patch,
            check=check,
            answer="" if turn is None else "\n".join(turn.own_texts),
            cost_usd=None if after.estimate and after.estimate.requests else after.cost,
            tokens=total_of(after),
            steps=sum(isinstance(each.info, AssistantMessage) for each in turns),
            model="" if after.model is None else f"{after.model.provider_id}/{after.model.id}",
        )

    async def forget(self, attempt: Attempt) -> None:
        """Delete the folder and the checkpoints of a finished attempt.

        :raises SetupError: when git fails.
        """
        if self._sharing is not None and attempt.begun:
            session_id = self._ledger.state.session_id(attempt)
            await Checkpoints(self._folders, self._sharing.remote, attempt, session_id).drop()
        folder = self._folders.of(attempt)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await asyncio.to_thread(Path(f"{folder}.index").unlink, missing_ok=True)

    async def _answered(self, app: App, session: Session, attempt: Attempt) -> Turn | None:
        """Return the last turn of the session, or None if the time limit ended the attempt."""
        settings = self._ledger.state.settings
        limit_s = attempt.job.time_limit_s or settings.time_limit_s
        turns = await app.list_turns(session.id)
        if turns and (self._sharing is None or _is_complete(turns[-1])):
            working = app.resume(session.id)
        else:
            text = MOVED if turns else attempt.job.text
            prompt = Prompt(text, model=settings.model, agent=settings.agent)
            working = app.prompt(session, prompt)
        try:
            async with asyncio.timeout(limit_s):
                return await working
        except TimeoutError:
            await app.abort(session.id)
            return None

    async def _set_up(self, app: App, attempt: Attempt) -> None:
        if command := attempt.job.setup:
            done = await self._command(app, attempt, command)
            if done.exit:
                raise SetupError(f"setup ended with {done.exit}: {command}\n{done.output_tail}")

    async def _command(self, app: App, attempt: Attempt, command: str) -> Check:
        """Run a command of the job; merge its standard output and standard error in order."""
        done = await run_program(
            ("bash", "-c", f"exec 2>&1\n{command}"),
            cwd=self._folders.of(attempt),
            env=await app.user_env(),
            timeout_s=COMMAND_LIMIT_S,
            limit_bytes=OUTPUT_LIMIT_BYTES,
            as_tool=True,
        )
        tail = done.output[-OUTPUT_TAIL_BYTES:].decode(errors="replace")
        reason = ending(done, COMMAND_LIMIT_S)
        code = -1 if done.exit_code is None else done.exit_code
        return Check(exit=code, output_tail=f"{tail}\n{reason}" if reason else tail)

    def _options(self, saved: Checkpoints | None) -> AppOptions:
        settings = self._ledger.state.settings
        config: dict[str, object] = {"title": "off"}
        if settings.auto:
            config["auto_approve"] = True
        if settings.sandbox is not None:
            config["sandbox"] = settings.sandbox
        if settings.job_budget_usd is not None:
            config["budget"] = {"usd": settings.job_budget_usd}
        options = AppOptions(config=config, data_dir=self._root / DATA)
        if saved is None or self._sharing is None:
            return msgspec.structs.replace(options, plugins=(*self._rules, Meter(self._ledger)))
        plugins = (*self._sharing.plugins, *self._rules, Meter(self._ledger, before=saved.save))
        asks = settings.ask and self._sharing.serve is not None
        env = self._sharing.env
        return msgspec.structs.replace(options, plugins=plugins, env=env, interactive=asks)

    @property
    def _rules(self) -> tuple[RunRules, ...]:
        settings = self._ledger.state.settings
        rules = RunRules(allow=settings.allow, deny=settings.deny)
        return (rules,) if settings.allow or settings.deny else ()

    def _result(
        self, attempt: Attempt, started: float, status: Status, **facts: object
    ) -> JobResult:
        return JobResult(
            id=attempt.job.id,
            attempt=attempt.number,
            status=status,
            session_id=self._ledger.state.session_id(attempt),
            started=started,
            ended=time.time(),
            worker=f"{socket.gethostname()}:{os.getpid()}",
            pegboard=__version__,
            labels=attempt.job.labels,
            meta=dict(attempt.job.meta),
            **facts,  # type: ignore[arg-type]
        )


async def _session(app: App, session_id: str, title: str) -> Session:
    """Return the attempt's session; create the session if it is not stored yet."""
    try:
        return await app.session(session_id)
    except NotFoundError:
        return await app.create_session(id=session_id, title=title)


def _is_complete(turn: Turn) -> bool:
    """Return whether the model finished its answer without an error or a pending tool call."""
    info = turn.info
    return (
        isinstance(info, AssistantMessage)
        and info.error is None
        and info.finish not in (None, "tool-calls", "unknown")
    )


def is_throttled(result: JobResult) -> bool:
    """Return whether the provider refused a request because of too many requests or an overload."""
    return result.status == "error_infra" and result.refused in _THROTTLES


def total_of(session: Session) -> int:
    """Return the number of tokens that a session used, cached tokens included."""
    return 0 if session.tokens is None else session.tokens.total or 0


def _outcome(turn: Turn | None) -> tuple[Status, str]:
    """Return the status of an attempt that ended with this turn, and the reason for a failure."""
    if turn is None:
        return "timed_out", "the time limit is over"
    failure: Failure | None = turn.info.error if isinstance(turn.info, AssistantMessage) else None
    if failure is None:
        return "done", ""
    text = str(getattr(failure.data, "message", "") or type(failure).__name__)
    match failure:
        case BudgetFailure():
            return "stopped_budget", text
        case AbortedFailure():
            return "failed", text
        case _ if isinstance(failure, _INFRA):
            return "error_infra", text
        case _:
            return "failed", text


def _status_of(turn: Turn | None) -> int:
    """Return the HTTP status with which the provider refused the last request, or 0."""
    match turn:
        case Turn(info=AssistantMessage(error=APIFailure(data=data))):
            return data.status_code or 0
        case _:
            return 0
