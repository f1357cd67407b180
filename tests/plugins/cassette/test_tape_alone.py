"""A cassette alone is enough for a replay: no model, no provider and no key is configured."""

import json
from pathlib import Path

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, call, say

SCHEMA = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'


async def test_a_replay_needs_no_model(tmp_path: Path) -> None:
    lines = []
    for name in ("one", "two"):
        (tmp_path / name / "project").mkdir(parents=True)
        lines.append(CommandLine(tmp_path / name, tmp_path / name / "project"))
    recording, fresh = lines
    tape = tmp_path / "tape.jsonl"
    asked = ("-p", "--json-schema", SCHEMA, "how many")
    async with ModelServer(by_step(call("list", {}), say('{"n": 3}'))) as server:
        recording.use_model(server.url, small_model="fake/model")
        done = await recording("run", "--record", str(tape), *asked)

    again = await fresh("run", "--replay", str(tape), *asked)
    fresh.configure(model="openai/gpt-5")
    other = await fresh("run", "--replay", str(tape), *asked)
    named = await fresh("run", "--replay", str(tape), "-m", "openai/gpt-5", *asked)

    for each in (done, again, other):
        assert (each.code, json.loads(each.out)) == (0, {"n": 3}), each.err
    assert named.code == 4
    assert "is not on" in named.err
    assert server.url not in tape.read_text()
