"""`pegboard stats`: what sessions have used."""

import json

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, call, say


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


BUSTER = """
from itertools import count

from pegboard import hookimpl

numbers = count()


@hookimpl
async def chat_system_transform(system):
    return (f"Request {next(numbers)}.", *system)
"""


async def test_what_a_plugin_costs_the_cache_is_named(pegboard: CommandLine) -> None:
    plugins = pegboard.home / "config" / "plugins"
    plugins.mkdir(parents=True, exist_ok=True)
    (plugins / "clock.py").write_text(BUSTER)
    bash = call("bash", {"command": "echo hi", "description": "Say"})
    async with ModelServer(by_step(bash, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"})
        ran = await pegboard("run", "hi")
        shown = await pegboard("stats")
        told = await pegboard("stats", "--json")

    assert "the plugin clock (chat_system_transform) changed the start" in ran.err
    (row,) = [line.split() for line in shown.out.splitlines() if line.startswith("clock")]
    assert row[:4] == ["clock", "chat_system_transform", "Request", "1."]
    (loss,) = json.loads(told.out)["cache_losses"]
    assert (loss["plugin"], loss["line"], loss["times"]) == ("clock", "Request 1.", 1)
    assert loss["tokens"] > 100


async def test_a_trace_names_who_changes_the_beginning_of_a_request(pegboard: CommandLine) -> None:
    plugins = pegboard.home / "config" / "plugins"
    plugins.mkdir(parents=True, exist_ok=True)
    (plugins / "clock.py").write_text(BUSTER)

    traced = await pegboard("plugins", "trace", "--format", "json")

    (loss,) = json.loads(traced.out)["prefix"]
    assert (loss["plugin"], loss["hook"]) == ("clock", "chat_system_transform")
    assert loss["line"] == "Request 1."
