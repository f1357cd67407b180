"""The pytest fixture `cassette`, which gives each test a file of recorded model answers."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

MODE = "PEGBOARD_CASSETTE"
"""The variable that says how tests use their tapes; on a build server it is `replay`."""


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return a value for `AppOptions.config` by which this test records or replays model answers.

    The file is `cassettes/FILE.TEST.jsonl`. The mode is `auto`, or the value of PEGBOARD_CASSETTE.
    """
    name = re.sub(r"[^\w.-]+", "-", f"{request.path.stem}.{request.node.name}")
    file = Path(request.path).parent / "cassettes" / f"{name}.jsonl"
    options = {"file": str(file), "mode": os.environ.get(MODE, "auto")}
    return {"plugins": {"cassette": {"options": options}}}
