"""A final answer with a form, and files of a prompt, over the wire."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pegboard_client import AsyncClient, Client, ServerError

from pegboard import Prompt
from pegboard.errors import InvalidInputError
from pegboard.schema.message import JsonFormat, UserMessage
from pegboard.schema.wire import to_json
from support.wire.served import Served, model, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root: Path = tmp_path_factory.mktemp("forms")
    with model() as port, served(root, port) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with Client.discover(server.directory, env=server.env) as opened:
        yield opened


def test_a_final_answer_may_have_a_form(client: Client) -> None:
    session = client.sessions.create()
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

    turn = client.prompt(session, Prompt('%say {"name": "Fram"}', output=schema))
    [prompt, _] = client.messages(session.id)

    assert turn.output == {"name": "Fram"}
    assert isinstance(prompt.info, UserMessage)
    assert prompt.info.format == JsonFormat(schema=schema)
    assert to_json(prompt.info)["format"]["type"] == "json_schema"
    assert to_json(turn.info)["structured"] == {"name": "Fram"}


def test_the_form_for_a_server_is_a_schema(client: Client) -> None:
    with pytest.raises(InvalidInputError, match="is a JSON Schema, and not type; give a dict"):
        client.prompt("ses_any", Prompt("hi", output=str))


def test_a_form_that_is_none_is_refused(client: Client) -> None:
    session = client.sessions.create()

    with pytest.raises(ServerError) as raised:
        client.prompt(session, Prompt("hi", output={"type": "obj"}))

    assert (raised.value.status, raised.value.name) == (400, "BadRequest")
    assert "JSON Schema of the output is wrong" in raised.value.message


async def test_the_files_of_a_prompt_are_read_beside_the_event_loop(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("read me")
    readers: list[threading.Thread] = []
    attach = Prompt.attach

    def noted(prompt: Prompt, directory: Path) -> Prompt:
        readers.append(threading.current_thread())
        return attach(prompt, directory)

    monkeypatch.setattr(Prompt, "attach", noted)
    async with AsyncClient.discover(server.directory, env=server.env) as client:
        session = await client.sessions.create()
        await client.prompt(session, Prompt("look", files=[str(note)], no_reply=True))
        [turn] = await client.messages(session.id)

    assert "read me" in str(turn.parts)
    assert readers
    assert threading.main_thread() not in readers
