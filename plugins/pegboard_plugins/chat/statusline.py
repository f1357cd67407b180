"""The status line: folder, agent, model, context window and cost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard.display import Span
from pegboard_plugins.chat.hookspecs import ChatState, StatusItem
from pegboard_plugins.chat.modes import SpanLine

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Facts

LEAST_LETTERS, NAME_LETTERS = 8, 32
"""The minimum and maximum length of a model's name; a longer name loses its beginning."""
BETWEEN = " · "


def status_line(
    facts: "Facts", state: ChatState, queued: int, items: Sequence[StatusItem], width: int
) -> SpanLine:
    """Fit the facts and the plugins' items into a line; low priorities are left out first."""
    kept = [*_own(facts, state, width), *items, *_rare(facts, queued)]
    while len(kept) > 1 and len(BETWEEN.join(each.text for each in kept)) > width:
        kept.remove(min(kept, key=lambda each: each.priority))
    return (Span(BETWEEN.join(each.text for each in kept if each.text), "dim"),)


def _own(facts: "Facts", state: ChatState, width: int) -> Sequence[StatusItem]:
    """Return the status items that no plugin adds; a long model name is cut to fit `width`."""
    place = facts.directory.name + (f"{BETWEEN}{facts.branch}" if facts.branch else "")
    name = state.model or "no model"
    effort = f":{state.variant}" if state.variant else ""
    room = width - len(f"{state.mode}{BETWEEN}…{effort}")
    letters = max(LEAST_LETTERS, min(NAME_LETTERS, room))
    model = name if len(name) <= letters else f"…{name[-letters:]}"
    return (
        StatusItem(id="place", text=place, priority=20),
        StatusItem(id="agent", text="" if state.agent == state.mode else state.agent, priority=80),
        StatusItem(id="mode", text=state.mode, priority=95),
        StatusItem(id="model", text=model + effort, priority=90),
    )


def _rare(facts: "Facts", queued: int) -> Sequence[StatusItem]:
    """Return items that are displayed only if there is something to say, such as queued prompts."""
    sandboxed = facts.sandbox not in ("", "off")
    found = (
        ("sandbox", f"sandbox {facts.sandbox}" if sandboxed else "", 30),
        ("trust", "not trusted: /trust" if facts.untrusted else "", 60),
        ("unseen", "written by an agent: /trust" if facts.unseen else "", 60),
        ("queue", f"{queued} queued" if queued else "", 70),
        ("server", facts.server, 10),
    )
    return [StatusItem(id=name, text=text, priority=rank) for name, text, rank in found if text]
