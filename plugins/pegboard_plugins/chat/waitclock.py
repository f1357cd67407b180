"""The time that tool calls wait for the user, which does not count as their working time."""

from time import time

from pegboard.schema.session import PermissionRequest, QuestionRequest


class WaitClock:
    """A clock that measures how long the requests of each call wait for the user."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[str, float]] = {}
        self._waited_s: dict[str, float] = {}
        self._missed: set[str] = set()

    def begin(self, request: PermissionRequest | QuestionRequest) -> None:
        """Record that a request begins to wait."""
        call_id = request.tool.call_id if request.tool is not None else ""
        self._begun[request.id] = call_id, time()

    def end(self, request_id: str) -> None:
        """Record that a request no longer waits."""
        call_id, since_s = self._begun.pop(request_id, ("", time()))
        self._waited_s[call_id] = self._waited_s.get(call_id, 0.0) + time() - since_s

    def miss(self, call_id: str) -> None:
        """Record that this chat did not receive a call's requests, so its wait time is unknown."""
        self._missed.add(call_id)

    def forget(self, call_id: str) -> None:
        """Drop the time of an ended call."""
        self._waited_s.pop(call_id, None)

    def waited_s(self, call_id: str) -> float | None:
        """Return the seconds that a call has waited so far, or None if unknown."""
        if call_id in self._missed:
            return None
        still_s = sum(time() - since for call, since in self._begun.values() if call == call_id)
        return self._waited_s.get(call_id, 0.0) + still_s
