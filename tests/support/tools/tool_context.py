"""A context for tools in tests: real files and processes, recorded questions, no session."""

import asyncio
import os
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pegboard.contract.context import SubagentResult
from pegboard.contract.plugin import Stash
from pegboard.errors import PermissionDeniedError
from pegboard.kit.redact import child_env
from pegboard.processes.background import ToolProcesses
from pegboard.processes.process import run_process
from pegboard.schema.config import Config
from pegboard.schema.session import Ruleset
from pegboard.trust.decisions import Decision
from pegboard.unstable import LocalLedger, ProgramSearch


def said(output: str) -> str:
    """What a command wrote, without the lines that tell how it ended and how long it took."""
    return output.rpartition("\n\n[")[0]


@dataclass(frozen=True)
class Ask:
    permission: str
    patterns: tuple[str, ...]
    always: tuple[str, ...] = ()
    metadata: Any = field(default=None, compare=False)


class Context:
    """`ToolContext` for one session in `directory`; permissions in `denied` are refused."""

    message_id = "msg_test"
    call_id = "call_test"
    agent = "build"
    cancelled = False

    def __init__(
        self,
        directory,
        *,
        ledger=None,
        session_id="ses_test",
        denied=(),
        rules=(),
        child=None,
        config=None,
    ):
        self._session = SimpleNamespace(
            id=session_id,
            rulesets=(Ruleset(source="config", rules=tuple(rules)),),
            config=config or Config(),
            home=Path.home(),
            private=(),
            depth=0,
            turns=(),
            places=None,
        )
        self.directory = self.worktree = Path(directory).resolve()
        self.files = (ledger or LocalLedger()).view(session_id)
        self.denied = set(denied)
        self.asks = []
        self._granted, self.later = set(), []
        self.while_asked = lambda: None
        self.shown = []
        self.has_shown = asyncio.Event()
        self.edits = []
        self.trusted = True
        self.trusted_by_user = True
        self.allowed = {}
        self.stash = Stash()
        self.owner = ToolProcesses(self._session.config.limits)
        self.background = self.owner.background(session_id, output_dir=self.directory / ".output")
        self.stored = {}
        self.list = ()
        self.child = child or SubagentResult(
            session_id="ses_child", outcome="done", text="found it"
        )

    async def permit(self, tool, args):
        """Make the requests of a call, as the engine does before it."""
        self._granted, self.later = set(), []
        self._requires, self._answer = tool.requires, await tool.require(self, args)

    def granted(self, requires):
        assert requires is self._requires
        return self._answer

    def settled(self):
        """Check that what was to be required later was required."""
        assert {*self.later} <= self._granted

    async def require(self, permission, patterns, *, always=(), metadata=None, later=False):
        ask = Ask(permission, tuple(patterns), tuple(always), metadata)
        if ask in self._granted:
            return
        if not later:
            self.asks.append(ask)
            self.while_asked()
        await asyncio.sleep(0)
        if permission in self.denied:
            raise PermissionDeniedError(f"{permission} is denied")
        if later:
            self.later.append(ask)
        else:
            self._granted.add(ask)

    async def require_path(self, path, *, metadata=None):
        real = Path(os.path.realpath(path))  # noqa: ASYNC240 - a test
        if not real.is_relative_to(self.worktree):
            facts = {**(metadata or {}), "filepath": str(real), "parentDir": str(real.parent)}
            await self.require("external_directory", [f"{real.parent}/*"], metadata=facts)
        return real

    def progress(self, *, title=None, metadata=None):
        self.shown.append((title, dict(metadata or {})))
        self.has_shown.set()

    async def run(
        self,
        argv,
        *,
        cwd=None,
        env=None,
        timeout_s=120.0,
        limit_bytes=1 << 20,
        on_output=None,
        reads=(),
    ):
        return await run_process(
            argv,
            cwd=cwd or self.directory,
            env=child_env({**os.environ, **(env or {})}),
            timeout_s=timeout_s,
            limit_bytes=limit_bytes,
            on_output=on_output,
            spill_dir=self.directory / ".output",
        )

    async def todos(self):
        return self.list

    async def set_todos(self, todos):
        self.list = tuple(todos)

    async def state(self, key):
        return self.stored.get(key)

    async def set_state(self, key, value):
        self.stored[key] = value

    @property
    def session(self):
        """What tests change here or in itself."""
        facts = vars(self._session)
        facts["trust"] = Decision(
            trusted=self.trusted,
            trusted_by_user=self.trusted_by_user,
            allowed=self.allowed,
            root=self.worktree,
        )
        facts.setdefault("worktree", self.worktree)
        facts.setdefault("directory", self.directory)
        return self._session

    def programs(self, env):
        return ProgramSearch.of(self.session, env)

    def trust_program(self, program):
        """As `pegboard trust program` does it."""
        self.allowed |= self.programs(os.environ).digests(str(program))

    def in_sandbox(self, argv, *, cwd, env, reads=(), network=None):
        return nullcontext(argv)

    async def process_env(self):
        return child_env(os.environ)

    async def record_edit(self, path):
        self.edits.append(path)

    @property
    def changed(self):
        return tuple(dict.fromkeys(self.edits))

    async def run_subagent(
        self, agent, prompt, *, description, session_id=None, timeout_s=3600.0, on_start=None
    ):
        if on_start:
            on_start(self.child.session_id)
        self.prompted = (agent, prompt, description, session_id)
        return self.child

    def asked(self, permission):
        """The patterns of all questions about this permission."""
        return [text for ask in self.asks if ask.permission == permission for text in ask.patterns]


async def call(tool, context, /, **args):
    """What the tool answers to these arguments, checked and permitted as a model's are."""
    values = tool.validate(args)
    await context.permit(tool, values)
    result = await tool.call(context, values)
    context.settled()
    return result
