"""A tool call that no answer makes: asked about, bounded and told as any other, stored nowhere."""

import json
from collections.abc import Mapping
from typing import Any

from pegboard.contract.context import ChildResult
from pegboard.engine.engine import ChildRequest, Engine
from pegboard.engine.history import History
from pegboard.engine.input.usermessage import model_for
from pegboard.engine.processor import Processor
from pegboard.engine.run import Run
from pegboard.engine.sessions import SessionIds, ancestors_of, imposed_rulesets
from pegboard.engine.toolcall import Caller
from pegboard.engine.writer import Writer
from pegboard.errors import PermissionDeniedError, PermissionRejectedError, ToolError
from pegboard.policy.agents import default_agent, find_agent
from pegboard.providers import ToolCall
from pegboard.schema.part import Completed, Failed
from pegboard.schema.session import Session


async def call_tool(  # noqa: PLR0913 - the facts of a call
    engine: Engine,
    session: Session,
    ids: SessionIds,
    tool: str,
    args: Mapping[str, Any],
    *,
    agent: str | None,
    model: str | None,
) -> Completed:
    """How the call ends, beside the session's own run; `App.call_tool` says what it raises."""
    name = agent or session.agent or default_agent(engine.config, engine.agents).name
    speaker = find_agent(engine.agents, name)
    choice = model_for(engine, session, model, name)
    chosen = await engine.models.find(f"{choice.provider_id}/{choice.model_id}")
    ancestors = await ancestors_of(engine.storage, session)
    async with Writer(engine.storage, engine.bus.publish_all, fence=None) as writer:
        run = Run(
            engine=engine,
            session=session,
            history=History(()),
            ids=ids,
            writer=writer,
            ancestors=tuple(each.id for each in ancestors),
            parent_rulesets=imposed_rulesets(engine, ancestors),
            run_child=_no_subagents,
        )
        message = run.new_answer(ids.message(), name, chosen)
        unstored = Writer(engine.storage, engine.bus.publish_all, fence=None)  # it never runs
        processor = Processor(message, sink=unstored, new_id=ids.part, now=engine.now)
        caller = Caller(run, run.view(speaker, chosen), processor, offered=frozenset({tool}))
        try:
            await caller(ToolCall(engine.ids.new("tool"), tool, json.dumps(dict(args))))
        finally:
            await run.trail.close()
    [part] = processor.calls()
    match part.state:
        case Completed() as done:
            return done
        case Failed(error=error, metadata=metadata):
            if not (metadata or {}).get("denied"):
                raise ToolError(error)
            raise (PermissionRejectedError if run.blocked else PermissionDeniedError)(error)
        case _:
            raise AssertionError("a call has ended when its caller returns")


async def _no_subagents(request: ChildRequest) -> ChildResult:
    raise ToolError(
        f"{request.agent.name} cannot work here: a subagent needs an answer to work for"
    )
