"""The real terminal interface, two generations of it, attached to the server.

The newer one does the short day of `day.py`; with PEGBOARD_WIRE=all in the environment both do all
that it has (two minutes more).
"""

import os
import shutil
from pathlib import Path

import pytest

from support.wire.served import Served
from wire.day import DAY, SHORT, Step
from wire.real_clients import TERMINALS, Clients
from wire.terminal import attached

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(400),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]
NEWER = TERMINALS[-1]
ALL = os.environ.get("PEGBOARD_WIRE") == "all"
DAYS = dict.fromkeys(TERMINALS, DAY) if ALL else {NEWER: SHORT}


@pytest.mark.parametrize(("version", "steps"), DAYS.items(), ids=DAYS)
def test_a_day_s_work_in_the_terminal(
    version: str, steps: tuple[Step, ...], clients: Clients, server: Served, tmp_path: Path
) -> None:
    program = clients.terminal(version)
    places = {"directory": server.directory, "root": tmp_path / "client"}
    with attached(program, url=server.url, password=server.token, **places) as terminal:
        for step in steps:
            step(terminal)


def test_the_day_has_each_step_of_the_protocol_s_driver() -> None:
    assert len(set(DAY)) == len(DAY) == 29
    assert set(SHORT) <= set(DAY)
