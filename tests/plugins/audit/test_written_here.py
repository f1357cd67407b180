"""A line is written on the event loop, unless that would hold it."""

import asyncio
import json

from pegboard_plugins.audit.chain import locked
from pegboard_plugins.audit.check import Audited, verify_audit
from pegboard_plugins.audit.trail import Audit


def words(path):
    return [json.loads(line).get("word") for line in path.read_text().splitlines()]


async def test_a_log_that_is_held_or_slow_does_not_hold_the_event_loop(tmp_path, monkeypatch):
    path = tmp_path / "audit.jsonl"
    threads = []

    async def to_thread(work, *given):
        threads.append(work.__name__)
        return await asyncio.get_running_loop().run_in_executor(None, work, *given)

    monkeypatch.setattr("pegboard_plugins.audit.trail.asyncio.to_thread", to_thread)
    monkeypatch.setattr("pegboard_plugins.audit.trail.SYNC_AFTER_S", 600)
    monkeypatch.setattr("pegboard_plugins.audit.trail.SLOW_S", 600)
    audit = Audit(path)
    await audit.write("decision", {"word": "first"})
    await audit.write("decision", {"word": "here"})
    with locked(path, writing=True):
        waiting = asyncio.create_task(audit.write("decision", {"word": "held"}))
        while len(threads) < 2:  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0)
        assert words(path) == ["first", "here"]
    await waiting
    monkeypatch.setattr("pegboard_plugins.audit.trail.SLOW_S", 0)
    await audit.write("decision", {"word": "slow"})
    await audit.write("decision", {"word": "apart"})
    await audit.aclose()

    assert words(path) == ["first", "here", "held", "slow", "apart"]
    assert threads == ["_tried", "_tried", "_tried", "_sync"]
    assert verify_audit(path) == Audited(lines=5)
