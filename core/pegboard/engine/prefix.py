"""The beginnings of requests: if tools, system prompt or earlier messages change, caches miss.

Providers cache the beginning that two requests have in common.
"""

from pegboard.contract import modelhooks
from pegboard.contract.context import SessionView
from pegboard.contract.results import FoldStep, PrefixChange, PrefixLoss
from pegboard.hooks.callers import Hooks
from pegboard.providers import ModelRequest

MOST_SESSIONS = 32
"""The newest request is kept of so many sessions."""
PREFIX_LOSS = "prefixLoss"
"""The key of a message's metadata under which the loss is stored."""
_TOOL = "tool_definition"
_Asked = tuple[ModelRequest, tuple[FoldStep, ...]]


class Prefixes:
    """The newest request of each session, with the changes that plugins made to this request."""

    def __init__(self) -> None:
        self._newest: dict[str | None, _Asked] = {}

    async def loss(self, hooks: Hooks, view: SessionView, sent: ModelRequest) -> PrefixLoss | None:
        """Return what plugins report about a request with a changed prefix, or None."""
        change = self._change(sent, tuple(hooks.steps.pop(view.id, ())))
        if change is None:
            return None
        return await hooks.first(modelhooks.prefix_changed, session=view, change=change)

    def _change(self, request: ModelRequest, steps: tuple[FoldStep, ...]) -> PrefixChange | None:
        """Store the session's new request; return how its prefix changed, or None if it did not."""
        before, earlier = self._newest.pop(request.session_id, (None, ()))
        if not any(step.hook == _TOOL for step in steps):  # tools are defined once per turn
            steps = (*(step for step in earlier if step.hook == _TOOL), *steps)
        if len(self._newest) >= MOST_SESSIONS:
            del self._newest[next(iter(self._newest))]
        self._newest[request.session_id] = request, steps
        if before is None or _is_continued(before, request):
            return None
        return PrefixChange(before=before, after=request, steps_before=earlier, steps_after=steps)


def _is_continued(before: ModelRequest, after: ModelRequest) -> bool:
    """Return whether a request extends the request `before`, or goes to a different model."""
    models = [(each.model.provider_id, each.model.id) for each in (before, after)]
    return models[0] != models[1] or (
        before.tools == after.tools
        and before.system == after.system
        and before.messages == after.messages[: len(before.messages)]
    )
