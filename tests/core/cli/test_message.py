"""How words, standard input and files become a prompt."""

import io
from pathlib import Path

import click
import pytest

from pegboard.cli.message import Message, MessageCommand, file_part, parts_of
from pegboard.errors import InvalidInputError
from pegboard.schema.prompt import FileInput, TextInput


def text(*words: str, literal: tuple[str, ...] = (), stdin: bytes = b"") -> str:
    return Message(words=words, literal=literal).text(io.BytesIO(stdin))


def test_words_are_joined_with_blanks_and_never_quoted() -> None:
    assert text("say", "a b", '"c"') == 'say a b "c"'


def test_standard_input_is_read_only_for_a_dash() -> None:
    class Unread(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise AssertionError("standard input was read")

    assert Message(words=("hello",)).text(Unread()) == "hello"
    assert text("explain:", "-", stdin=b"an error\n") == "explain: an error"


def test_bytes_that_are_no_text_do_not_stop_the_prompt() -> None:
    assert text("-", stdin=b"caf\xe9") == "caf\ufffd"
    assert text("caf\udce9") == "caf\ufffd"


def test_after_the_double_dash_everything_is_text() -> None:
    seen: list[Message] = []

    @click.command(cls=MessageCommand)
    @click.argument("words", nargs=-1)
    @click.pass_context
    def command(ctx: click.Context, words: tuple[str, ...]) -> None:
        seen.append(Message(words=words, literal=ctx.meta.get(MessageCommand.LITERAL, ())))

    command.main(["say", "--", "-", "--help", "--"], standalone_mode=False)

    assert seen == [Message(words=("say",), literal=("-", "--help", "--"))]
    assert seen[0].text(io.BytesIO(b"not read")) == "say - --help --"


@pytest.mark.parametrize("words", [(), (" ", "\n"), ("-",)])
def test_an_empty_message_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError, match="the message is empty"):
        text(*words)


def test_files_come_before_the_text_with_their_kind(tmp_path: Path) -> None:
    picture, code = tmp_path / "a b.png", tmp_path / "code.py"
    picture.write_bytes(b"\x89PNG")
    code.write_text("pass")

    parts = parts_of("look", [picture, code, tmp_path])

    assert parts == (
        FileInput(mime="image/png", url=picture.as_uri(), filename="a b.png"),
        FileInput(mime="text/plain", url=code.as_uri(), filename="code.py"),
        FileInput(mime="application/x-directory", url=tmp_path.as_uri(), filename=tmp_path.name),
        TextInput(text="look"),
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.txt"

    with pytest.raises(InvalidInputError, match=r"cannot read .*missing\.txt: No such file"):
        file_part(missing)
