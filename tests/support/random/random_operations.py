"""Operations on sessions that a seed chooses: who does what, when, to which session.

The choices are made before anything runs, so a seed always means the same list. What a choice
meets depends on the machine's time; a rule that is broken now and then is broken.
"""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pegboard import App, Prompt
from pegboard.errors import NotFoundError, PegboardError, StorageError
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.part import TextInput
from pegboard.schema.session import Scope, Session
from pegboard_plugins.shared.frontend import ShellOrder, forked, reverted, run_shell, unreverted
from support.random.random_model import ENDS, TOOLS, Payment, Plan

Kind = Literal[
    "prompt",
    "note",
    "abort",
    "leave",
    "rename",
    "archive",
    "unarchive",
    "shell",
    "summarize",
    "fork",
    "revert",
    "unrevert",
    "delete",
    "once",
    "reject",
    "approve",
    "close",
]
WEIGHTS: dict[Kind, int] = {
    "prompt": 14,
    "note": 3,
    "abort": 6,
    "leave": 2,
    "rename": 4,
    "archive": 2,
    "unarchive": 1,
    "shell": 2,
    "summarize": 1,
    "fork": 1,
    "revert": 2,
    "unrevert": 1,
    "delete": 1,
    "once": 3,
    "reject": 1,
    "approve": 4,
    "close": 0,
}
CLOSES: Kind = "close"
"""Only the second App is closed while others work on."""
SCOPES: tuple[Scope, ...] = ("session", "project")
SESSIONS = 3
LAST_S = (0.1, 0.3, 0.6)
"""How long operations begin for, crowded or with time to end."""
DEEPEST = 2
CHILD = "/child"
"""Behind a session's name: the newest subagent's session of it."""
FOR_CHILDREN: tuple[Kind, ...] = ("prompt", "abort", "rename", "delete", "fork")


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing to be done: `place` is a share, of the messages or whatever there is to choose."""

    number: int
    at_s: float
    actor: str
    kind: Kind
    session: str
    words: str
    place: float


@dataclass(frozen=True, slots=True)
class Deed:
    """An operation and what became of it, in nanoseconds of the machine's clock.

    `outcome` is "ok" where it was acknowledged, the name of an error, or empty when nobody knows:
    its caller went away, or its process was killed. `value` is the id that it gave.
    """

    operation: Operation
    session_id: str
    began: int
    ended: int | None = None
    outcome: str = ""
    value: str = ""
    at: str = ""


@dataclass(slots=True)
class Ledger:
    """All that is known of a run: who asked for what, what was answered, what was paid."""

    deeds: dict[int, Deed] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    payments: list[Payment] = field(default_factory=list)

    def note(self, deed: Deed) -> None:
        """A deed has begun, or ended."""
        self.deeds[deed.operation.number] = deed

    def named(self, name: str, session_id: str) -> None:
        """A session that operations name so is there."""
        self.sessions[name] = session_id

    def paid(self, payment: Payment) -> None:
        """A request was paid for."""
        self.payments.append(payment)

    def take(self, line: bytes) -> None:
        """Note what another process has told; a line that it did not finish is nothing."""
        if not line.endswith(b"\n"):
            return
        kind, facts = json.loads(line)
        match kind:
            case "deed":
                self.note(Deed(**{**facts, "operation": Operation(**facts["operation"])}))
            case "named":
                self.named(*facts)
            case "paid":
                self.paid(Payment(**facts))
            case _:
                assert kind == "open"


def chosen(seed: int, actors: Sequence[str], count: int) -> tuple[Operation, ...]:
    """The operations of a seed, in the order of their beginnings; the first session has most."""
    chance = random.Random(f"{seed} {actors}")
    kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
    lasts_s = chance.choice(LAST_S)
    instants = sorted(chance.uniform(0, lasts_s) for _ in range(count))
    names = [f"s{number}" for number in range(SESSIONS)]
    operations = []
    for number, at_s in enumerate(instants):
        [kind] = chance.choices(kinds, weights)
        session = names[int(chance.random() ** 2 * len(names))]
        to_child = kind in FOR_CHILDREN and chance.random() < 0.15
        operation = Operation(
            number=number,
            at_s=round(at_s, 4),
            actor=chance.choice(actors),
            kind=kind,
            session=session + CHILD * to_child,
            words=_words(chance, kind, number),
            place=chance.randrange(1000) / 1000,
        )
        operations.append(operation)
        if kind == "fork":
            names.append(f"fork{number}")
    if "second" in actors and chance.random() < 0.5:
        last = operations[-1]
        at_s = chance.uniform(0, last.at_s)
        operations.append(replace(last, number=count, at_s=at_s, actor="second", kind=CLOSES))
    return tuple(operations)


def _words(chance: random.Random, kind: Kind, number: int) -> str:
    match kind:
        case "prompt" | "note":
            return f"p{number} {_written(_plan(chance))}"
        case "shell":
            return f"echo shell{number}; sleep {chance.choice(('0', '0.05', '0.2'))}"
        case "approve":
            return chance.choice(SCOPES)
        case _:
            return f"{kind} {number}"


def _written(plan: Plan) -> str:
    return repr(plan).replace("'", '"')


def _plan(chance: random.Random, depth: int = 0) -> Plan:
    steps = [_calls(chance, depth) for _ in range(chance.choice((0, 0, 1, 1, 2)))]
    return [*steps, [chance.choice(ENDS)]]


def _calls(chance: random.Random, depth: int) -> list[Any]:
    words: list[Any] = [
        chance.choice((*TOOLS, "guarded")) for _ in range(chance.choice((1, 1, 2, 3)))
    ]
    if depth < DEEPEST and chance.random() < 0.25:
        words.append(_plan(chance, depth + 1))
    if chance.random() < 0.1:
        words.append(chance.choice(ENDS))
    return words


class Actor:
    """Somebody who does operations in one App, and notes what becomes of them."""

    def __init__(self, app: App, ledger: Ledger) -> None:
        self._app = app
        self._ledger = ledger
        self._waiting: dict[int, asyncio.Task[Any]] = {}
        self.closed = False

    async def all(self, operations: Sequence[Operation]) -> None:
        """Do these, each at its time, and answer what is asked once all have begun."""
        began = time.monotonic()
        last_s = max((each.at_s for each in operations), default=0.0)
        async with asyncio.TaskGroup() as group:
            answering = group.create_task(self._answer_all(began + last_s))
            async with asyncio.TaskGroup() as doing:
                for operation in operations:
                    doing.create_task(self._at_its_time(operation, began))
            answering.cancel()

    async def _at_its_time(self, operation: Operation, began: float) -> None:
        await asyncio.sleep(began + operation.at_s - time.monotonic())
        session_id = await self._session_id(operation.session)
        if session_id is None or self.closed:
            return
        self._ledger.note(Deed(operation, session_id, time.monotonic_ns()))
        task = asyncio.ensure_future(self._value(operation, session_id))
        self._waiting[operation.number] = task
        try:
            value, at = await task
            self._end(operation, "ok", value, at)
        except PegboardError as error:
            self._end(operation, type(error).__name__, str(error))
        except asyncio.CancelledError:
            self._end(operation)
            if not task.cancelled():
                raise
        finally:
            self._waiting.pop(operation.number, None)

    async def _session_id(self, name: str) -> str | None:
        """The session of this name, None while there is none."""
        parent, child, _ = name.partition(CHILD)
        session_id = self._ledger.sessions.get(parent)
        if not child or session_id is None or self.closed:
            return session_id
        try:
            children = await self._app.storage.children(session_id)
        except StorageError:  # the App was closed meanwhile
            return None
        return children[-1].id if children else None

    def _end(self, operation: Operation, outcome: str = "", value: str = "", at: str = "") -> None:
        deed = self._ledger.deeds[operation.number]
        ended = time.monotonic_ns()
        deed = replace(deed, ended=ended, outcome=outcome, value=value, at=at or deed.at)
        self._ledger.note(deed)

    async def _value(self, operation: Operation, session_id: str) -> tuple[str, str]:
        """The id that the operation gave, and the one that it was done at."""
        act: Callable[[Operation, str], Awaitable[object]] = getattr(self, f"_{operation.kind}")
        found = await act(operation, session_id)
        match found:
            case Turn(info=info):
                return info.id, ""
            case Session(id=known):
                return known, ""
            case str():
                return "", found
            case _:
                return "", ""

    async def _prompt(self, operation: Operation, session_id: str) -> Turn:
        return await self._app.prompt(session_id, operation.words)

    async def _note(self, operation: Operation, session_id: str) -> Turn:
        said = [TextInput(text=operation.words)]
        return await self._app.prompt(session_id, Prompt(parts=said, no_reply=True))

    async def _abort(self, _: Operation, session_id: str) -> None:
        await self._app.abort(session_id)

    async def _leave(self, operation: Operation, _: str) -> None:
        """Somebody who waits for something goes away."""
        if self._waiting:
            waiting = sorted(self._waiting)
            number = waiting[int(operation.place * len(waiting))]
            if number != operation.number:
                self._waiting[number].cancel()

    async def _rename(self, operation: Operation, session_id: str) -> Session:
        return await self._app.update_session(session_id, title=operation.words)

    async def _archive(self, _: Operation, session_id: str) -> Session:
        return await self._app.update_session(session_id, archived=True)

    async def _unarchive(self, _: Operation, session_id: str) -> Session:
        return await self._app.update_session(session_id, archived=False)

    async def _shell(self, operation: Operation, session_id: str) -> Turn:
        return await run_shell(self._app, session_id, ShellOrder(command=operation.words))

    async def _summarize(self, _: Operation, session_id: str) -> Turn:
        return await self._app.summarize(session_id)

    async def _fork(self, operation: Operation, session_id: str) -> Session:
        fork = await forked(self._app, session_id)
        self._ledger.named(f"fork{operation.number}", fork.id)
        return fork

    async def _revert(self, operation: Operation, session_id: str) -> str:
        turns = await self._app.list_turns(session_id)
        prompts = [turn.info.id for turn in turns if isinstance(turn.info, UserMessage)]
        if not prompts:
            return ""
        point = prompts[int(operation.place * len(prompts))]
        deed = self._ledger.deeds[operation.number]
        self._ledger.note(replace(deed, at=point))
        await reverted(self._app, session_id, point)
        return point

    async def _unrevert(self, _: Operation, session_id: str) -> None:
        await unreverted(self._app, session_id)

    async def _delete(self, _: Operation, session_id: str) -> None:
        await self._app.delete_session(session_id)

    async def _once(self, operation: Operation, _: str) -> None:
        if (request := self._asked(operation)) is not None:
            await self._app.answer_permission(request, "once")

    async def _reject(self, operation: Operation, _: str) -> None:
        if (request := self._asked(operation)) is not None:
            message = "do without" if operation.place < 0.5 else None
            await self._app.answer_permission(request, "reject", message)

    async def _approve(self, operation: Operation, _: str) -> str:
        request = self._asked(operation)
        if request is None:
            return ""
        [found] = [each for each in self._app.permissions.pending() if each.id == request]
        await self._app.policy.approve(request, SCOPES[SCOPES.index(operation.words)])
        return f"{found.session_id} {found.patterns[0]}"

    async def _close(self, _: Operation, __: str) -> None:
        """The App ends, in the middle of all that it does."""
        self.closed = True
        await self._app.aclose()

    def _asked(self, operation: Operation) -> str | None:
        pending = self._app.permissions.pending()
        return pending[int(operation.place * len(pending))].id if pending else None

    async def _answer_all(self, after: float) -> None:
        """Say yes to everything, so that everything comes to an end."""
        await asyncio.sleep(after - time.monotonic())
        while not self.closed:
            for request in self._app.permissions.pending():
                with suppress(NotFoundError):  # another has answered it meanwhile
                    await self._app.answer_permission(request.id, "once")
            await asyncio.sleep(0.01)
