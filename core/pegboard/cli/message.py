"""The message of a prompt, as it was typed: words, standard input and attached files."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from pegboard.errors import InvalidInputError, NotFoundError
from pegboard.nearest import nearest
from pegboard.schema.prompt import FileInput, PartInput, TextInput
from pegboard.session.attachments import DIRECTORY_MIME, mime_of

STDIN = "-"
_SLASH = re.compile(r"/(?P<name>[\w:.-]+)(?:\s(?P<arguments>.*)|$)", re.DOTALL)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """The words before `--`, where `-` is standard input, and the text after it."""

    words: Sequence[str]
    literal: Sequence[str] = ()

    def text(self, stdin: BinaryIO) -> str:
        """The whole message; standard input is read only when `-` asks for it.

        Bytes that are no UTF-8 become replacement characters.

        :raises InvalidInputError: when there is nothing but blanks.
        """
        words = [*(_read(stdin) if word == STDIN else word for word in self.words), *self.literal]
        text = " ".join(words).strip()
        if not text:
            raise InvalidInputError("the message is empty: pegboard run MESSAGE, or - to read it")
        return text.encode(errors="surrogateescape").decode(errors="replace")

    @property
    def typed(self) -> str:
        """The user's own words, in which `@file` means a file."""
        return " ".join(word for word in self.words if word != STDIN)

    @property
    def is_typed(self) -> bool:
        """Nothing of the message comes from elsewhere."""
        return STDIN not in self.words and not self.literal

    def command(self, text: str, known: Iterable[str]) -> tuple[str, str] | None:
        """Name and arguments, if the message begins with a slash command.

        :raises NotFoundError: for a name that is almost one of the known ones.
        """
        match = _SLASH.match(text) if self.words and self.words[0].startswith("/") else None
        if match is None:
            return None
        name, names = match["name"], list(known)
        if name in names:
            return name, (match["arguments"] or "").strip()
        if meant := nearest(name, names):
            raise NotFoundError("command", name, suggestions=meant)
        return None


class MessageCommand(click.Command):
    """A command that takes what follows `--` as it is, and keeps it apart from its words."""

    LITERAL = "pegboard.literal"
    """Where `Context.meta` has the words after `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what is before `--`."""
        if "--" in args:
            place = args.index("--")
            ctx.meta[self.LITERAL] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)


def parts_of(text: str, files: Sequence[Path]) -> tuple[PartInput, ...]:
    """The parts of a prompt: the files first, then the text.

    :raises InvalidInputError: when a file cannot be read.
    """
    return (*(file_part(file) for file in files), TextInput(text=text))


def file_part(file: Path) -> FileInput:
    """A file or a folder as a part of a prompt; relative to the current directory.

    :raises InvalidInputError: when it cannot be read.
    """
    path = file.absolute()
    try:
        if path.is_dir():
            return FileInput(mime=DIRECTORY_MIME, url=path.as_uri(), filename=path.name)
        with path.open("rb"):
            return FileInput(mime=mime_of(path), url=path.as_uri(), filename=path.name)
    except OSError as error:
        raise InvalidInputError(f"cannot read {file}: {error.strerror or error}") from error


def _read(stdin: BinaryIO) -> str:
    return stdin.read().decode(errors="replace")
