"""A session as plugins see it, for tests that call a plugin's functions themselves."""

from pathlib import Path

from pegboard.contract.context import SessionView
from pegboard.schema.config import Agent, Config
from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime, Turn
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.part import Part
from pegboard.schema.session import Ruleset, Session, SessionTime, Tokens
from pegboard.trust.decisions import Decision

MODEL = Model(id="m", provider_id="p", name="M", api=ModelApi(id="m"))
BUILD = Agent(name="build", mode="primary", permission=(), options={})
# 2026-03-01T12:00:00Z
CREATED_MS = 1_772_366_400_000


def view(
    worktree: Path,
    *,
    directory: Path | None = None,
    agent: Agent = BUILD,
    config: Config | None = None,
    rulesets: tuple[Ruleset, ...] = (),
    turns: tuple[Turn, ...] = (),
) -> SessionView:
    """A session in a worktree, in its root unless `directory` says else."""
    where = directory or worktree
    info = Session(
        id=f"ses_{worktree.name}",
        slug="slug",
        project_id="project",
        directory=str(where),
        title="Title",
        version="0",
        time=SessionTime(created=CREATED_MS, updated=CREATED_MS),
    )
    return SessionView(
        info=info,
        directory=where,
        worktree=worktree,
        agent=agent,
        agents=(agent,),
        model=MODEL,
        config=config or Config(),
        rulesets=rulesets,
        trust=Decision(trusted=False, root=worktree),
        turns=turns,
    )


def turn_of(*parts: Part) -> Turn:
    """An answer of the model with these parts."""
    info = AssistantMessage(
        id="msg_0",
        session_id="ses_1",
        parent_id="msg_00",
        model_id="m",
        provider_id="p",
        mode="build",
        agent="build",
        path=MessagePath(cwd="/", root="/"),
        cost=0,
        tokens=Tokens(),
        time=MessageTime(created=1),
    )
    return Turn(info=info, parts=parts)
