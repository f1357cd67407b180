"""`pegboard run`: what is piped in, what is refused, and whose denial counts."""

import json

from plugins.cli.commands import CommandLine
from support.models.model_server import Answer, Body, ModelServer, by_step, call, say


async def test_a_subagent_s_denial_is_the_turn_s(pegboard: CommandLine) -> None:
    task = {"description": "look", "prompt": "Look.", "subagent_type": "explore"}

    def answer(request: Body) -> Answer:
        offered = {each["function"]["name"] for each in request.get("tools", ())}
        begins = request["messages"][-1]["role"] == "user"
        if "task" in offered:
            return call("task", task) if begins else say("Done.")
        return call("read", {"filePath": "/etc/hostname"}) if begins else say("No.")

    async with ModelServer(answer) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "--format", "json", "hi")

    assert (done.code, done.records[-1]["outcome"]) == (5, "denied")
    assert "external_directory" in done.err


async def test_what_is_piped_in_reaches_the_model(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "explain", stdin="the error")

    assert done.code == 0
    marked = 'explain\n\n<material from="standard input">the error</material>'
    assert json.dumps(marked)[1:-1] in json.dumps(server.requests[0]["messages"])


async def test_a_slash_command_that_is_not_trusted_is_not_sent_as_text(
    pegboard: CommandLine,
) -> None:
    commands = pegboard.project / ".pegboard" / "command"
    commands.mkdir(parents=True)
    (commands / "hey.md").write_text("Say hey to $1.")
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url)
        refused = await pegboard("run", "/hey", "you")
        sent = await pegboard("run", "--", "/hey you")

    assert refused.code == 2
    assert "there is no command /hey: this project's own commands are not loaded" in refused.err
    assert "pegboard trust allow" in refused.err
    assert sent.code == 0
    assert len(server.requests) == 1


async def test_what_looks_like_a_command_and_is_none_is_not_sent_as_text(
    pegboard: CommandLine,
) -> None:
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url, title="off")
        refused = await pegboard("run", "/nope", "words")
        sent = await pegboard("run", "--", "/nope words")
        path = await pegboard("run", "/etc/hosts is a path")

    assert refused.code == 2
    assert "error: there is no command /nope; to send it as text, write `--`" in refused.err
    assert (sent.code, path.code) == (0, 0)
    assert len(server.requests) == 2


async def test_a_mentioned_file_that_is_not_there_is_named(pegboard: CommandLine) -> None:
    (pegboard.project / "there.py").write_text("")
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url, title="off")
        done = await pegboard("run", "compare @there.py, @nofile.py and @src/none for @general")
        text = await pegboard("run", "--", "look at @nofile.py")

    assert (done.code, text.code) == (0, 0)
    assert [line for line in done.err.splitlines() if "@" in line] == [
        "warning: @nofile.py is sent as text: there is no such file",
        "warning: @src/none is sent as text: there is no such file",
    ]
    assert "warning" not in text.err
