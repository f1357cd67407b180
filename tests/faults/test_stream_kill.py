"""A text whose process is killed while it is written: little of it is lost."""

import asyncio
import random
import sys
from pathlib import Path

import pytest

from pegboard.engine.writer import STORE_S, STORE_SHARE
from pegboard.schema.part import TextPart
from support.models.played import Played, opened, text
from support.processes.forks import PIPE, environment, start

CHILD = Path(__file__).parents[1] / "support/wire/stream_child.py"
COMMIT_S = 1.0
"""How long a busy machine may take to store what is due."""


def killed(folder: Path, first: int, piece: int, after_s: float) -> list[tuple[int, float]]:
    """How many letters the model had said when, until it was killed, so long after the first."""
    command = [sys.executable, str(CHILD), str(folder), str(first), str(piece)]
    with start(command, cwd=folder, env=environment(), stdout=PIPE) as child:
        assert child.stdout is not None
        said = [_said(child.stdout.readline())]
        while said[-1][1] < said[0][1] + after_s:
            said.append(_said(child.stdout.readline()))
        child.kill()
        said += [_said(line) for line in child.stdout.readlines() if line.endswith(b"\n")]
    return said


def _said(line: bytes) -> tuple[int, float]:
    letters, at_s = line.split()
    return int(letters), float(at_s)


@pytest.mark.parametrize(("first", "piece"), [(1, 20), (1, 400), (400_000, 100)])
async def test_a_kill_costs_the_last_moment_or_a_tenth_of_a_text(
    tmp_path: Path, first: int, piece: int
) -> None:
    after_s = COMMIT_S + random.uniform(STORE_S, 4 * STORE_S)
    said = await asyncio.to_thread(killed, tmp_path, first, piece, after_s)

    async with opened(tmp_path, Played(text("I go on."))) as app:
        [session] = await app.sessions()
        [part] = [
            p for p in (await app.list_turns(session.id))[-1].parts if isinstance(p, TextPart)
        ]

    letters, end_s = said[-1]
    due = max((known for known, at_s in said if at_s < end_s - STORE_S - COMMIT_S), default=0)
    kept = len(part.text)
    assert due > 0
    assert kept >= min(due, letters * (1 - STORE_SHARE))
    assert kept <= letters
