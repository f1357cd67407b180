"""The state of a chat as plugins and the status line see it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pegboard_plugins.chat.hookspecs import ChatState
from pegboard_plugins.chat.talk import Talk
from pegboard_plugins.shared.frontend import PLAN

if TYPE_CHECKING:
    from pegboard_plugins.chat.course import Course


def chat_state(talk: Talk, windows: Mapping[str, int]) -> ChatState:
    """Return the state of a conversation; `windows` has the models' context windows in tokens."""
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


def ticks(course: "Course | None") -> bool:
    """Return whether the footer counts seconds: if any work runs without waiting for the user."""
    if course is None or not course.requests:
        return course is not None and course.busy
    requests = course.requests.values()
    waiting = {each.tool.call_id for each in requests if each.tool is not None}
    asking = {each.session_id for each in requests} & course.children.keys()
    children = {name for name, child in course.children.items() if child.running}
    calls = [part for part in course.calls.values() if part.call_id not in waiting]
    return len(calls) > len(asking) or not children <= asking
