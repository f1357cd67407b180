"""Views: sessions as plugins see them, and the rules that bind subagents."""

from pegboard.contract.context import Ruleset, SessionView
from pegboard.engine.engine import Engine
from pegboard.policy.agents import find_agent, rulesets_for
from pegboard.schema.config import Agent
from pegboard.schema.message import Turn
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.session import Session, SessionTime

MAX_DEPTH = 4
"""Subagents may call subagents this many levels deep."""
_NO_MODEL = Model(id="none", provider_id="none", name="None", api=ModelApi(id="none"))


def make_view(  # noqa: PLR0913 - the fields of a view
    engine: Engine,
    session: Session,
    agent: Agent,
    model: Model,
    *,
    depth: int = 0,
    parents: tuple[Ruleset, ...] = (),
    turns: tuple[Turn, ...] = (),
) -> SessionView:
    """A session as plugins see it."""
    return SessionView(
        info=session,
        directory=engine.workspace.directory,
        worktree=engine.workspace.worktree,
        agent=agent,
        agents=tuple(engine.agents.values()),
        model=model,
        config=engine.config,
        rulesets=rulesets_for(engine.config, agent, session=session.permission, parent=parents),
        depth=depth,
        interactive=engine.questions.interactive,
        trusted=engine.decision.trusted,
        trusted_by_user=engine.decision.trusted_by_user,
        allowed=engine.decision.allowed,
        home=engine.home,
        config_dir=engine.places.config,
        private=engine.private,
        background=engine.background.listed(session.id),
        turns=turns,
    )


async def ancestor_rulesets(engine: Engine, session: Session) -> tuple[int, tuple[Ruleset, ...]]:
    """The depth of a session below the user's, and the rules that its ancestors impose.

    :raises NotFoundError: when an ancestor's agent is gone, and its rules with it.
    """
    found: list[Ruleset] = []
    depth = 0
    while session.parent_id is not None and depth <= MAX_DEPTH:
        session = await engine.storage.session(session.parent_id)
        depth += 1
        agent = find_agent(engine.agents, session.agent or "")
        found.extend(rulesets_for(engine.config, agent, session=session.permission))
    return depth, tuple(found)


def unstored_view(engine: Engine, agent: Agent) -> SessionView:
    """A session that is not there, as its first prompt would see it."""
    now = engine.now()
    session = Session(
        id=engine.ids.new("session"),
        slug="",
        project_id=engine.workspace.project_id,
        directory=str(engine.workspace.directory),
        title="",
        version="",
        time=SessionTime(created=now, updated=now),
    )
    return make_view(engine, session, agent, _NO_MODEL)
