"""A prompt as a program makes it, and the text of what comes back."""

from pathlib import Path

import pytest

from pegboard import Prompt
from pegboard.errors import InvalidInputError
from pegboard.schema.part import FileInput, TextInput
from support.models.played import Played, opened, text


def test_files_come_before_the_text_with_their_kind(tmp_path: Path) -> None:
    picture, code = tmp_path / "a b.png", tmp_path / "code.py"
    picture.write_bytes(b"\x89PNG")
    code.write_text("pass")

    prompt = Prompt("look", files=["a b.png", code, "."]).attach(tmp_path)

    folder = FileInput(
        mime="application/x-directory", url=tmp_path.as_uri(), filename=tmp_path.name
    )
    assert prompt == Prompt(
        parts=(
            FileInput(mime="image/png", url=picture.as_uri(), filename="a b.png"),
            FileInput(mime="text/plain", url=code.as_uri(), filename="code.py"),
            folder,
            TextInput(text="look"),
        )
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot read .*missing\.txt: No such file"):
        Prompt("look", files=["missing.txt"]).attach(tmp_path)


async def test_a_text_is_a_prompt_and_the_answer_has_one(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("Hello there."))) as app:
        session = await app.create_session()

        turn = await app.prompt(session, "Say hello")
        [typed, _] = await app.list_turns(session.id)

    assert (typed.text, turn.text) == ("Say hello", "Hello there.")


async def test_files_are_relative_to_the_directory_of_the_app(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("Read."))) as app:
        note = app.workspace.directory / "note.txt"
        note.write_text("line one\n")
        session = await app.create_session()

        await app.prompt(session, Prompt("Read it", files=["note.txt"]))
        [typed, _] = await app.list_turns(session.id)

    assert "line one" in typed.text


async def test_a_prompt_of_nothing_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, Played()) as app:
        session = await app.create_session()

        with pytest.raises(InvalidInputError, match="the prompt is empty"):
            await app.prompt(session, Prompt())

        assert await app.list_turns(session.id) == ()
