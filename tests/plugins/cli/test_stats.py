"""`pegboard stats`: what sessions have used."""

import json

from model_server import ModelServer, by_step, call, say
from plugins.cli.commands import CommandLine


async def test_models_agents_and_tools_are_counted(pegboard: CommandLine) -> None:
    bash = call("bash", {"command": "echo hi", "description": "Say"})
    async with ModelServer(by_step(bash, say("Done."), bash, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"})
        nothing = await pegboard("stats")
        await pegboard("run", "hi")
        shown = await pegboard("stats", "--days", "1")
        told = await pegboard("stats", "--json")

    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no sessions yet\n")
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["sessions", "1"] in lines
    assert ["answers", "2"] in lines
    assert ["cost", "$0.0400"] in lines
    assert ["build", "fake/model", "2", "20", "10", "$0.0400"] in lines
    assert ["bash", "1"] in lines
    facts = json.loads(told.out)
    assert (facts["prompts"], facts["tools"], facts["unpriced"]) == (1, {"bash": 1}, False)
