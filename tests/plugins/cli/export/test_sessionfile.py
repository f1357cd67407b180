"""Conversations as lines of JSON: written down, taken in, and refused with a reason."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard import App, InvalidInputError
from pegboard.schema.part import Failed, Running, TimeSpan, ToolPart
from pegboard.schema.wire import encode
from pegboard.storage.changes import PutPart
from pegboard_plugins import task
from pegboard_plugins.cli.export.sessionfile import (
    exported_lines,
    read_conversations,
    store_session,
)
from support.models.played import Played, opened, text
from support.sessions.conversing import converse, provider, shape


async def written(app: App, session_id: str) -> list[bytes]:
    return [*exported_lines(await read_conversations(app, session_id))]


async def test_an_export_comes_back_as_the_same_conversation_of_this_project(
    tmp_path: Path,
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    async with opened(here, provider(), task) as app:
        session = await converse(app)
        lines = await written(app, session.id)
        before = await app.list_turns(session.id)
        [child] = await app.children(session.id)
        inner = await app.list_turns(child.id)
    async with opened(there, Played(text("on we go"))) as app:
        info = await store_session(app, lines)
        again = await store_session(app, lines)
        after = await app.list_turns(info.id)
        [copy] = await app.children(info.id)
        todos = await app.storage.todos(info.id)

        assert again.id != info.id
        assert shape(before + inner) == shape(after + await app.list_turns(copy.id))
        assert (info.project_id, info.directory) == (
            app.workspace.project_id,
            str(app.workspace.directory),
        )
        assert (info.title, info.permission, info.cost) == (
            session.title,
            session.permission,
            session.cost,
        )
        assert [todo.content for todo in todos] == ["look up"]
        assert f"session_id: {copy.id}" in encode(after[3]).decode()
        await app.prompt(info.id, "go on")


async def test_an_export_is_stable_lines_of_json(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        lines = await written(app, session.id)
        assert lines == await written(app, session.id)

    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds == ["session", *["message"] * 5, "todos", "session", *["message"] * 2, "end"]
    assert json.loads(lines[0])["format"] == 1
    assert json.loads(lines[-1]) == {"type": "end", "lines": len(lines) - 1}


SPOILED: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "cut off": (lambda lines: lines[:-1], "line 10: the file is not complete"),
    "no prompt": (lambda lines: [lines[0], *lines[2:]], "line 2: .* answers"),
    "not JSON": (lambda lines: [lines[0], b"{]\n", *lines[2:]], "line 2: JSON is malformed"),
    "no session": (lambda lines: lines[1:], "line 1: the first line must be a session"),
    "a later format": (
        lambda lines: [lines[0].replace(b'"format":1', b'"format":9'), *lines[1:]],
        "line 1: format 9",
    ),
    "twice": (lambda lines: [*lines[:2], *lines[1:]], "line 3: .* is there twice"),
    "a foreign part": (
        lambda lines: [
            lines[0],
            lines[1].replace(b'"messageID":"msg_', b'"messageID":"msg_x'),
            *lines[2:],
        ],
        "line 2: the part .* another message",
    ),
    "a bad id": (
        lambda lines: [line.replace(b"ses_", b"sess/") for line in lines],
        "line 1: not the id of a session",
    ),
    "a line is missing": (lambda lines: [*lines[:-2], lines[-1]], "line 10: 10 lines"),
    "more behind the end": (lambda lines: [*lines, lines[0]], "line 12: nothing may follow"),
    "empty": (lambda _: [], "line 0: the file is not complete"),
}


@pytest.mark.parametrize(("spoil", "where"), SPOILED.values(), ids=SPOILED)
async def test_a_bad_file_is_refused_whole_with_the_line(
    tmp_path: Path, spoil: Callable[[list[bytes]], list[bytes]], where: str
) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        lines = await written(app, session.id)
        with pytest.raises(InvalidInputError, match=where):
            await store_session(app, spoil(lines))

        assert len(await app.sessions()) == 1


async def test_what_ran_at_the_export_is_interrupted_in_the_import(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        [_, answer, *_] = await app.list_turns(session.id)
        running = ToolPart(
            id=app.storage.ids.new("part"),
            session_id=session.id,
            message_id=answer.info.id,
            call_id="c",
            tool="bash",
            state=Running(input={"command": "sleep"}, time=TimeSpan(start=1)),
        )
        await app.storage.commit(PutPart(running))
        info = await store_session(app, await written(app, session.id))
        [_, copy, *_] = await app.list_turns(info.id)

    assert isinstance(copy.parts[-1].state, Failed)
