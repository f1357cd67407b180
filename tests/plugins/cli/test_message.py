"""How words, standard input and files become a prompt."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click
import pytest

from pegboard.errors import InvalidInputError
from pegboard_plugins.cli.message import Message, MessageCommand, read_stdin


def text(*words: str, literal: tuple[str, ...] = (), stdin: bytes = b"") -> str:
    given = read_stdin(io.BytesIO(stdin), words, pytest.fail)
    return Message(words=words, literal=literal, stdin=given).text


def test_words_are_joined_with_blanks_and_never_quoted() -> None:
    assert text("say", "a b", '"c"') == 'say a b "c"'


def test_standard_input_stands_where_the_dash_is() -> None:
    assert text("explain:", "-", stdin=b"an error\n") == "explain: an error"


@contextmanager
def piped(content: bytes) -> Iterator[BinaryIO]:
    """The end of a pipe into which this was written."""
    out, into = os.pipe()
    with os.fdopen(out, "rb") as end:
        os.write(into, content)
        os.close(into)
        yield end


def test_what_is_piped_in_stands_behind_the_words() -> None:
    with piped(b"an error\n") as stdin:
        given = read_stdin(stdin, ("explain",), pytest.fail)
    message = Message(words=("explain",), stdin=given)

    marked = '<material from="standard input">an error</material>'
    assert message.text == f"explain\n\n{marked}"
    assert message.typed == "explain"
    assert not message.is_typed


def test_what_is_piped_in_may_be_the_whole_message() -> None:
    with piped(b"explain this") as stdin:
        given = read_stdin(stdin, (), pytest.fail)

    assert Message(words=(), stdin=given).text == "explain this"


def test_a_file_is_read_and_a_device_is_not(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("an error")

    with (tmp_path / "log").open("rb") as file, Path("/dev/zero").open("rb") as device:
        assert read_stdin(file, ("explain",), pytest.fail) == "an error"
        assert read_stdin(device, ("explain",), pytest.fail) == ""
    assert read_stdin(file, ("explain",), pytest.fail) == "", "it is closed"


def test_a_pipe_that_nobody_writes_to_is_left_and_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard_plugins.cli.message.TELL_S", 0.01)
    monkeypatch.setattr("pegboard_plugins.cli.message.WAIT_S", 0.02)
    told: list[str] = []
    out, into = os.pipe()

    with os.fdopen(out, "rb") as end:
        assert read_stdin(end, ("explain",), told.append) == ""
    os.close(into)

    assert [line.split(":")[0].split(";")[0] for line in told] == [
        "waiting for piped input",
        "no piped input for 0.02 s",
    ]


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
    assert seen[0].text == "say - --help --"


@pytest.mark.parametrize("words", [(), (" ", "\n"), ("-",)])
def test_an_empty_message_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError, match="the message is empty"):
        text(*words)
