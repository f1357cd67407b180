"""A model that makes calls step after step, for tests of what a step costs."""

from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from pegboard.providers import (
    ModelRequest,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from support.models.played import USAGE, Played
from support.tools.worktrees import git

GO = "go"


class Stepping(Played):
    """A model that makes so many calls in each step; `at_step` is asked at each request."""

    def __init__(self, steps: int, *, calls: int = 1, name: str = "look") -> None:
        super().__init__()
        self.at_step: list[Callable[[ModelRequest], None]] = []
        self.steps = steps
        self._calls = calls
        self._name = name
        self._step = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        for ask in self.at_step:
            ask(request)
        self._step += 1
        yield TextStart("t")
        yield TextDelta("t", "I look at it.")
        yield TextEnd("t")
        if self._step > self.steps:
            yield StreamFinish("stop", USAGE)
            return
        for number in range(self._calls):
            arguments = f'{{"step": {self._step * 10 + number}}}'
            match self._name:
                case "sh":
                    arguments = f'{{"command": "echo {self._step}.{number} > file{number}"}}'
                case "bash":
                    arguments = f'{{"command": "true {self._step}.{number}"}}'
                case "read":
                    arguments = f'{{"filePath": "a.txt", "limit": {self._step * 10 + number}}}'
            yield ToolCall(f"call_{self._step}_{number}", self._name, arguments)
        yield StreamFinish("tool-calls", USAGE)


def repository(folder: Path) -> Path:
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "a.txt").write_text("one\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "start")
    return project


def per_step(series: Sequence[int], steps: tuple[int, int]) -> float:
    """What most steps cost: now and then one pays for the tidying of the database."""
    first, last = steps
    return median(after - before for before, after in pairwise(series[first : last + 1]))
