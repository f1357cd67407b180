"""The place where tools meet faults, and what may not be left of them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard.unstable import LocalLedger
from support.processes.processes import MARK, remaining
from support.tools.tool_context import Context

_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{12}")


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    """A context of a project with the file `a`, which the session has read.

    When the fault is over nothing of the call may be left.
    """
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("old\nkept\n")
    ledger = LocalLedger()
    context = Context(project, ledger=ledger)
    context.files.note_read(project / "a")
    yield context
    assert ledger._gates == {}, "a lock is left"
    assert remaining(MARK) == [], "a process is left"
    found = [path.name for path in project.rglob("*") if _TEMPORARY.fullmatch(path.name)]
    assert found == [], "a temporary file is left"
