"""The time that calls wait for the user, which does not count as time of their tools."""

from time import time

from pegboard.schema.session import PermissionRequest, QuestionRequest


class WaitClock:
    """Measures how long each call's requests have waited for the user."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[str, float]] = {}
        self._waited_s: dict[str, float] = {}
        self._missed: set[str] = set()

    def begin(self, request: PermissionRequest | QuestionRequest) -> None:
        """Note that a request waits from now on."""
        call_id = request.tool.call_id if request.tool is not None else ""
        self._begun[request.id] = call_id, time()

    def end(self, request_id: str) -> None:
        """Note that a request waits no longer."""
        call_id, since_s = self._begun.pop(request_id, ("", time()))
        self._waited_s[call_id] = self._waited_s.get(call_id, 0.0) + time() - since_s

    def miss(self, call_id: str) -> None:
        """Note a call whose requests were not observed."""
        self._missed.add(call_id)

    def forget(self, call_id: str) -> None:
        """Drop the time of a call that has ended."""
        self._waited_s.pop(call_id, None)

    def waited_s(self, call_id: str) -> float | None:
        """Return the seconds that a call has waited so far; None if unknown."""
        if call_id in self._missed:
            return None
        still_s = sum(time() - since for call, since in self._begun.values() if call == call_id)
        return self._waited_s.get(call_id, 0.0) + still_s
