"""`pegboard run --json-schema`: the value alone on standard output, here and on a server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard.cli import Exit
from plugins.cli.commands import CommandLine, Done
from support.models.model_server import ModelServer, by_step, call, say
from support.wire.served import Served, model, served

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "year": {"type": "integer"}},
    "required": ["name", "year"],
}
FRAM = '{"name": "Fram", "year": 1892}'


async def run(pegboard: CommandLine, *words: str, answer: str = FRAM) -> Done:
    bash = call("bash", {"command": "echo hi", "description": "Say"})
    async with ModelServer(by_step(bash, say(answer))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"})
        return await pegboard("run", *words, "Nansen's ship?")


@pytest.mark.parametrize("option", ["--json-schema", "--output-schema"])
@pytest.mark.parametrize("is_file", [True, False])
async def test_the_value_is_all_of_standard_output(
    pegboard: CommandLine, option: str, is_file: bool
) -> None:
    (pegboard.project / "ship.json").write_text(json.dumps(SCHEMA))

    given = "ship.json" if is_file else json.dumps(SCHEMA)
    done = await run(pegboard, option, given, answer=f"It is this one:\n```json\n{FRAM}\n```")

    assert done.code == 0, done.err
    assert done.out.count("\n") == 1
    assert json.loads(done.out) == json.loads(FRAM)
    assert "bash echo hi" in done.err


async def test_the_result_of_a_program_has_the_value(pegboard: CommandLine) -> None:
    done = await run(pegboard, "--json-schema", json.dumps(SCHEMA), "--format", "json")

    result = done.records[-1]
    assert (result["outcome"], result["structured"]) == ("done", json.loads(FRAM))


async def test_an_answer_that_does_not_fit_has_its_own_exit_code(pegboard: CommandLine) -> None:
    done = await run(pegboard, "--json-schema", json.dumps(SCHEMA), answer="no")

    assert (done.code, done.out) == (Exit.SCHEMA, "")
    assert "the answer does not fit the schema: it is not a JSON value" in done.err


async def test_a_failed_result_says_so(pegboard: CommandLine) -> None:
    schema = json.dumps(SCHEMA)
    done = await run(pegboard, "--json-schema", schema, "--format", "json", answer="no")

    result = done.records[-1]
    assert (result["outcome"], result["exit_code"]) == ("schema", 9)
    assert result["error"]["name"] == "StructuredOutputError"
    assert result["error"]["data"]["retries"] == 2
    assert "structured" not in result


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("missing.json", "cannot read missing.json: No such file or directory"),
        ("{", "the text is not JSON"),
        ('{"type": "obj"}', "the JSON Schema of the output is wrong"),
    ],
)
async def test_what_is_no_schema_is_refused(
    pegboard: CommandLine, schema: str, reason: str
) -> None:
    done = await run(pegboard, "--json-schema", schema)

    assert (done.code, done.out) == (Exit.USAGE, "")
    assert reason in done.err


async def test_a_slash_command_takes_no_schema(pegboard: CommandLine) -> None:
    done = await pegboard("run", "--json-schema", "{}", "/init")

    assert done.code == Exit.USAGE
    assert "--json-schema is for a message" in done.err


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root: Path = tmp_path_factory.mktemp("attached")
    with model() as port, served(root, port) as running:
        yield running


@pytest.mark.parametrize(("answer", "code"), [(FRAM, Exit.DONE), ("no", Exit.SCHEMA)])
async def test_a_server_gives_the_value_too(server: Served, answer: str, code: Exit) -> None:
    user = CommandLine(server.places, server.directory)
    schema = json.dumps(SCHEMA)

    done = await user("run", "--attach", server.url, "--json-schema", schema, f"%say {answer}")

    assert done.code == code, done.err
    assert done.out == ("" if code else json.dumps(json.loads(FRAM)) + "\n")
