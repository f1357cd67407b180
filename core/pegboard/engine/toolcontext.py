"""The context of a running tool call, an implementation of `ToolContext`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from pegboard.contract.context import FileAccess, SessionView, SubagentResult
from pegboard.contract.plugin import Stash
from pegboard.contract.results import ToolResult
from pegboard.contract.tools import Tool
from pegboard.enclosing import BackgroundAccess, Enclosed, ProcessResult
from pegboard.engine.asking.decision import refuse_denied, settle
from pegboard.engine.asking.requirements import CallFacts, Requirements
from pegboard.engine.engine import ChildRequest
from pegboard.engine.input.usermessage import queue
from pegboard.engine.processor import Processor
from pegboard.engine.run import Run
from pegboard.engine.toolresult import clean_facts, clean_text, clean_title
from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.kit.threads import LoopCalls
from pegboard.policy.clock import Clock
from pegboard.providers import ToolDefinition
from pegboard.schema.event import FileEdited
from pegboard.schema.message import Prompt
from pegboard.schema.part import ModelChoice, TextInput
from pegboard.schema.session import Answers, PermissionRequest, Question, Todo, ToolReference
from pegboard.schema.wire import encode_checked
from pegboard.snapshots import Writing
from pegboard.storage import PublishEvent
from pegboard.storage.changes import PutState, PutTodos

_Value = TypeVar("_Value")
CallTool = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]


class CallContext(CallFacts):
    """The `ToolContext` of one call; without `call_tool` the call cannot call other tools.

    `requirements` makes the call's permission requests. `exempt` is a permission that is granted
    without asking, because the user made the call, or None. `model` replaces the model of its
    subagents. `clock` times the call and is stopped while the user is asked. `writing` receives the
    files that the call changes; it is None until the tool's function runs, and for tools that
    change no files. `stored` completes when the call is stored. `kept` is metadata to store with
    the call. `cancelled` is for a tool in a thread, which cannot be stopped otherwise.
    """

    def __init__(  # noqa: PLR0913 - the facts of a call
        self,
        run: Run,
        view: SessionView,
        processor: Processor,
        call_id: str,
        message_id: str,
        *,
        tool: Tool,
        call_tool: CallTool | None = None,
        offered: tuple[ToolDefinition, ...] = (),
        exempt: str | None = None,
        model: ModelChoice | None = None,
    ) -> None:
        super().__init__(run.engine, view, tool)
        required = self.requirements = Requirements(run.engine, view, tool, self._decide)
        self.require, self.require_path = required.require, required.require_path
        self.granted = required.granted
        self._run = run
        self._processor = processor
        self.call_id = call_id
        self.message_id = message_id
        self._call_tool = call_tool
        self.offered = offered
        self._exempt = exempt
        self._model = model
        self._changed: dict[Path, None] = {}
        self.kept: dict[str, Any] = {}
        self.clock = Clock()
        self._threads = LoopCalls()
        self.writing: Writing | None = None
        self.stored = asyncio.get_running_loop().create_future()
        self.cancelled = False

    @contextmanager
    def cancellable(self) -> Iterator[None]:
        """Run the tool's work in the block; if cancelled, set `cancelled` for its threads."""
        try:
            yield
        except asyncio.CancelledError:
            self.cancelled = True
            self._threads.cancel()
            raise

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Return a context manager for the time in which the user is asked.

        File changes that the user makes meanwhile do not count as the call's, and the clock stops.
        """
        with self.writing.paused() if self.writing else nullcontext(), self.clock.timing():
            yield

    def _check_effect(self, path: Path) -> None:
        if self._tool.effect == "reads":
            raise ToolError(
                f'{self._tool.id} wants to change {path}, but has the effect "reads". It is a fault'
                ' of the tool, which must have the effect "edits".'
            )

    def _intend(self, path: Path) -> None:
        self._check_effect(path)
        self.requirements.check()
        if self.writing is not None:
            self.writing.intend(path)

    @property
    def files(self) -> FileAccess:
        """The access to files, which knows what was read and holds the write locks."""
        return self._engine.files.view(
            self.session.id, turns=self._run.history.turns, announce=self._intend, kept=self.kept
        )

    @property
    def background(self) -> BackgroundAccess:
        """The access to processes that continue after the tool call."""
        self._say_level()
        return self._engine.background_of(self.session.id)

    @property
    def stash(self) -> Stash:
        """The values that plugins hold in memory for the life of the App."""
        return self._engine.stash

    @property
    def changed(self) -> tuple[Path, ...]:
        """The files that this call has changed so far."""
        return tuple(self._changed)

    async def todos(self) -> tuple[Todo, ...]:
        """Return the session's to-do list."""
        return await self._engine.storage.todos(self.session.id)

    async def set_todos(self, todos: Sequence[Todo]) -> None:
        """Store the session's to-do list and publish its event."""
        # What cannot be stored and read again must fail this call, and not the turn.
        msgspec.json.decode(encode_checked(list(todos)), type=list[Todo])
        self._run.writer.change(PutTodos(self.session.id, tuple(todos)))
        await self._run.writer.barrier()

    async def _decide(self, request: PermissionRequest, later: bool) -> None:  # noqa: FBT001 - `Decide`
        if request.permission == self._exempt:
            return
        call = ToolReference(message_id=self.message_id, call_id=self.call_id)
        request = replace(request, tool=call)
        with self._waiting():
            if later:
                await refuse_denied(self._engine, self.session, request)
            else:
                await settle(self._engine, self.session, request, self._run.writer)

    async def ask_again(self, args: Mapping[str, Any], times: int) -> None:
        """Ask the user whether the call may run although it gave the same result `times` times."""
        try:
            patterns, facts = (self._tool.id,), {"tool": self._tool.id, "input": dict(args)}
            await self.require("doom_loop", patterns, always=patterns, metadata=facts)
        except PermissionDeniedError as error:
            raise type(error)(
                f"the same call of {self._tool.id} has come to the same {times} times,"
                f" and nothing has changed: {error}"
            ) from error

    async def ask_user(self, questions: Sequence[Question]) -> Answers:
        """Ask the user, and return the answers in the order of the questions."""
        from pegboard.engine.asking.toolquestion import ask_user  # few tools do

        call = ToolReference(message_id=self.message_id, call_id=self.call_id)
        with self._waiting():
            return await ask_user(self._run, questions, call)

    def progress(
        self, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Publish the progress of the tool's call."""
        head = None if title is None else clean_title(title)
        facts = None if metadata is None else clean_facts(metadata)
        self._threads.soon(lambda: self._processor.tool_progress(self.call_id, head, facts))

    def wait(self, work: Awaitable[_Value]) -> _Value:
        """Wait for an awaitable of the context from a tool that runs in a thread."""
        return self._threads.wait(work)

    async def run(  # noqa: PLR0913 - the facts of a process, all keyword-only
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 120.0,
        limit_bytes: int = 1 << 20,
        on_output: Callable[[str], None] | None = None,
        reads: Sequence[Path] = (),
    ) -> ProcessResult:
        """Run a process and return its result; its process group ends with the tool call."""
        where, variables = cwd or self.directory, {**await self.process_env(), **(env or {})}
        outputs = self._engine.outputs(self.session.id)
        seen = (*reads, outputs)
        self._say_level()
        async with self._engine.around(argv, cwd=where, env=variables, reads=seen) as command:
            return await self._engine.processes.run(
                command,
                cwd=where,
                env=variables,
                timeout_s=timeout_s,
                limit_bytes=limit_bytes,
                on_output=on_output,
                spill_dir=outputs,
            )

    @property
    def in_sandbox(self) -> Enclosed:
        """The function that wraps a command line in resource limits and, if wanted, a sandbox."""
        self._say_level()
        return self._engine.enclosed

    def _say_level(self) -> None:
        """Record the level of the sandbox for processes in the metadata of the tool call."""
        enclosure = self._engine.enclosure
        if enclosure is not None:
            hosts = {"sandbox_hosts": len(enclosure.hosts)} if enclosure.hosts else {}
            self.progress(metadata={"sandbox": enclosure.level, **hosts})

    async def state(self, key: str) -> Any:  # noqa: ANN401 - JSON that a plugin stored
        """Return the value that a plugin stored under this key in the session, or None."""
        return await self._engine.storage.state(self.session.id, key)

    async def set_state(self, key: str, value: Any) -> None:  # noqa: ANN401 - JSON
        """Store a JSON value under this key in the session, durably."""
        encode_checked({key: value})  # as for `set_todos`
        self._run.writer.change(PutState(self.session.id, key, value))
        await self._run.writer.barrier()

    async def record_edit(self, path: Path) -> None:
        """Record that the tool call has changed this file."""
        self._check_effect(path)
        if self.writing is not None:
            self.writing.tell(path)
        self._changed[path] = None
        self._run.writer.change(PublishEvent(FileEdited(file=clean_text(str(path)))))

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        """Call another tool, with a message part, a permission request and hooks of its own."""
        if self._call_tool is None:
            raise ToolError("a tool that another one has called cannot call tools itself")
        with self.clock.timing():
            return await self._call_tool(name, args)

    async def queue_prompt(self, text: str, *, agent: str) -> None:
        """Add a prompt to this session that `agent` answers after this step."""
        found = self._engine.agents.get(agent)
        if found is None or found.mode == "subagent":
            names = ", ".join(each.name for each in self.session.agents if each.mode != "subagent")
            raise ToolError(f"no agent {agent!r} talks to the user; these do: {names}")
        said = TextInput(text=clean_text(text), synthetic=True)
        await queue(self._run, Prompt(parts=(said,), agent=agent))

    async def run_subagent(  # noqa: PLR0913 - the facts of a subagent, all keyword-only
        self,
        agent: str,
        prompt: str,
        *,
        description: str,
        session_id: str | None = None,
        timeout_s: float = 3600.0,
        on_start: Callable[[str], None] | None = None,
    ) -> SubagentResult:
        """Run a subagent in a new session, or in `session_id`, and return its answer."""
        found = self._engine.agents.get(agent)
        if found is None or (found.mode == "primary" and self._exempt is None):
            names = ", ".join(a.name for a in self.session.agents if a.mode != "primary")
            raise ToolError(f"there is no subagent {agent!r}; there are: {names}")
        self._run.take_subagent(resumed=session_id is not None)
        own, ours = self._model or found.model, self.session.model
        chosen = f"{own.provider_id}/{own.model_id}" if own else f"{ours.provider_id}/{ours.id}"
        request = ChildRequest(
            parent=self.session.info,
            agent=found,
            rulesets=self.session.rulesets,
            prompt=prompt,
            description=description,
            session_id=session_id,
            model=chosen,
            timeout_s=timeout_s,
            on_start=on_start,
        )
        with self.clock.timing():
            async with self._run.width.taken():
                return await self._run.run_child(request)
