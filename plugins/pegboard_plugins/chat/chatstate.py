"""The state of a chat, as its additions and its last line get it."""

from collections.abc import Mapping

from pegboard_plugins.chat.hookspecs import ChatState
from pegboard_plugins.chat.talk import Talk
from pegboard_plugins.shared.frontend import PLAN


def chat_state(talk: Talk, windows: Mapping[str, int]) -> ChatState:
    """Return the state of a conversation; `windows` has the models' windows in tokens."""
    course, facts, chosen = talk.course, talk.feed.facts, talk.choices
    last = course.tokens if course else None
    used = last.input + last.cache.read + last.cache.write + last.output if last else 0
    summary = course.session.summary if course else None
    agent = chosen.agent or (course.agent if course else "") or facts.agent
    model = chosen.model or (course.model if course else "") or facts.model
    return ChatState(
        directory=facts.directory,
        session_id=course.session.id if course else "",
        title=course.session.title if course else "",
        agent=agent,
        mode=PLAN if agent == PLAN else chosen.mode,
        model=model,
        variant=chosen.variant,
        busy=talk.busy,
        tokens=used,
        window=windows.get(model, 0),
        cost=course.session.known_cost if course else 0.0,
        known_cost=(course.session.cost or 0.0) if course else 0.0,
        files=summary.files if summary else 0,
        additions=summary.additions if summary else 0,
        deletions=summary.deletions if summary else 0,
    )
