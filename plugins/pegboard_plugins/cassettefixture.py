"""The pytest fixture `cassette`: each test's recorded model answers, in a file next to it."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

MODE = "PEGBOARD_CASSETTE"
"""The variable that says how tests use their tapes; on a build server it is `replay`."""


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the configuration that gives the test's App its own tape, for `AppOptions.config`.

    The tape is `cassettes/FILE.TEST.jsonl`. The mode is `auto`, or the value of PEGBOARD_CASSETTE.
    """
    name = re.sub(r"[^\w.-]+", "-", f"{request.path.stem}.{request.node.name}")
    file = Path(request.path).parent / "cassettes" / f"{name}.jsonl"
    options = {"file": str(file), "mode": os.environ.get(MODE, "auto")}
    return {"plugins": {"cassette": {"options": options}}}
