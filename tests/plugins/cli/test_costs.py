"""What a conversation has cost, in every view: failed attempts count, and unknown is no number."""

import json
from typing import Any

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, finish, say, text, usage

QUICK = {"retry": {"attempts": 3, "max_wait_s": 0.01}, "title": "off"}


async def costs_in(pegboard: CommandLine) -> tuple[str, dict[str, Any]]:
    """The costs of the only session, as a table and as JSON."""
    [row] = json.loads((await pegboard("session", "list", "--format", "json")).out)
    table = await pegboard("session", "cost", row["id"])
    facts = await pegboard("session", "cost", row["id"], "--format", "json")
    return table.out, json.loads(facts.out)


def failing_twice() -> Any:
    """Two answers that end with an error after their usage, and a good one."""
    broken = [*text("Half"), *finish("error", usage=usage(1_000, 0))]
    answers = iter([broken, broken])
    return lambda _: next(answers, say("Done."))


async def test_every_view_counts_failed_attempts(pegboard: CommandLine) -> None:
    async with ModelServer(failing_twice()) as server:
        pegboard.use_model(server.url, **QUICK)
        ran = await pegboard("run", "hi")
        table, facts = await costs_in(pegboard)
    async with ModelServer(failing_twice()) as server:
        pegboard.use_model(server.url, **QUICK)
        records = (await pegboard("run", "hi", "--format", "json")).records

    assert "$2.0200 · " in ran.err
    assert ["total", "$2.0200"] in [line.split() for line in table.splitlines()]
    assert facts["cost"] == records[-1]["cost"] == 2.02


async def test_no_view_has_a_number_for_a_cost_that_is_unknown(pegboard: CommandLine) -> None:
    async with ModelServer(lambda _: [*text("Done."), *finish("stop")]) as server:
        pegboard.use_model(server.url, **QUICK)
        ran = await pegboard("run", "hi")
        table, facts = await costs_in(pegboard)
        stats, figures = await pegboard("stats"), await pegboard("stats", "--json")
        records = (await pegboard("run", "hi", "--format", "json")).records

    [finished] = [each for each in records if each["type"] == "step_finish"]
    assert "cost unknown · 1 step · " in ran.err
    assert "$" not in ran.err + table + stats.out
    assert ["total", "unknown"] in [line.split() for line in table.splitlines()]
    assert (facts["cost"], facts["agents"][0]["cost"]) == (None, None)
    assert (records[-1]["cost"], finished["part"]["cost"]) == (None, None)
    assert json.loads(figures.out)["unpriced"] is True


async def test_what_is_known_is_shown_with_what_is_not(pegboard: CommandLine) -> None:
    answers = [say("Done."), [*text("Done."), *finish("stop")]]
    async with ModelServer(lambda _: answers.pop(0)) as server:
        pegboard.use_model(server.url, **QUICK)
        await pegboard("run", "hi")
        await pegboard("run", "-c", "again")
        table, facts = await costs_in(pegboard)

    assert ["total", "$0.0200", "+", "unknown"] in [line.split() for line in table.splitlines()]
    assert facts["cost"] is None
