"""The message of `pegboard run`: the words, the text after `--`, and the standard input."""

import os
import re
import select
import stat
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import msgspec

from pegboard import InvalidInputError
from pegboard.errors import NotFoundError
from pegboard.plugins import nearest_names
from pegboard.schema.message import Prompt, Turn

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Feed

STDIN = "-"
TELL_S = 2.0
WAIT_S = 30.0
"""The longest wait for the first input from a pipe, which may be open by accident."""
UNTRUSTED = (
    "this project's own commands are not loaded, because it is not trusted: `pegboard trust allow` "
    "shows and trusts it; after `--` a message is sent unchanged"
)
AS_TEXT = "to send it as text, write `--` before it: pegboard run -- MESSAGE"
_SLASH = re.compile(r"/(?P<name>[\w:.-]+)(?:\s(?P<arguments>.*)|$)", re.DOTALL)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message in three parts: the words before `--`, the words after `--`, and standard input."""

    words: Sequence[str]
    literal: Sequence[str] = ()
    stdin: str = ""

    @property
    def text(self) -> str:
        """The whole message, which must not be empty.

        :raises InvalidInputError: when the message is empty or blank.
        """
        if not self.whole:
            raise InvalidInputError("the message is empty: pegboard run MESSAGE, or `-` to read it")
        return self.whole

    @property
    def whole(self) -> str:
        """The whole message, possibly "".

        Standard input replaces the word `-`, or follows the words. Bytes that are not UTF-8 become
        replacement characters.
        """
        words = [*(self.stdin if word == STDIN else word for word in self.words), *self.literal]
        said = " ".join(words)
        piped = "" if STDIN in self.words else self.stdin
        if said.strip() and piped.strip():  # without words what is piped in is the prompt
            from pegboard_plugins.shared.frontend import (
                material,  # few prompts have something piped in
            )

            piped = material(piped.strip("\n"), "standard input")
        text = "\n\n".join(filter(str.strip, (said, piped))).strip()
        return text.encode(errors="surrogateescape").decode(errors="replace")

    @property
    def is_slashed(self) -> bool:
        """Whether the message begins with a slash, as a slash command does."""
        return bool(self.words) and self.words[0].startswith("/")

    @property
    def typed(self) -> str:
        """The user's own words, in which `@file` means a file."""
        return " ".join(word for word in self.words if word != STDIN)

    @property
    def is_typed(self) -> bool:
        """Whether the user typed all of the message."""
        return not self.stdin and STDIN not in self.words and not self.literal

    def command(self, known: Iterable[str], *, untrusted: bool = False) -> tuple[str, str] | None:
        """Return the name and the arguments if the message is a slash command, or else None.

        `untrusted` means that the project may have commands that are not loaded.

        :raises NotFoundError: for an unknown name similar to known ones.
        :raises InvalidInputError: for any other unknown name.
        """
        match = _SLASH.match(self.text) if self.is_slashed else None
        if match is None:
            return None
        name, names = match["name"], list(known)
        if name in names:
            return name, (match["arguments"] or "").strip()
        if meant := nearest_names(name, names):
            raise NotFoundError("command", name, suggestions=meant)
        why = f": {UNTRUSTED}" if untrusted else f"; {AS_TEXT}"
        raise InvalidInputError(f"there is no command /{name}{why}")


class PromptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt to send, with its time limit in seconds.

    If `command` is set, the prompt runs this slash command, with its text as the arguments;
    `is_typed` means that a user typed the arguments. Without a command, `mentions` is the text in
    which the user may have typed `@file`. If `resumes`, no prompt is sent: the interrupted answer
    of the session is continued.
    """

    prompt: Prompt
    command: str | None = None
    is_typed: bool = False
    mentions: str = ""
    limit_s: float | None = None
    resumes: bool = False

    def sent(self, feed: "Feed", session_id: str) -> Coroutine[Any, Any, Turn]:
        """Return the coroutine that sends the prompt through `feed` and returns the last answer."""
        if self.resumes:
            return feed.resume(session_id)
        if self.command is None:
            return feed.prompt(session_id, self.prompt, mentions=self.mentions)
        return feed.run_command(session_id, self.command, self.prompt, typed=self.is_typed)


class MessageCommand(click.Command):
    """A click command that keeps the text after `--` unchanged, apart from the other arguments."""

    LITERAL = "pegboard.literal"
    """The key of the words after `--` in `Context.meta`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments before `--`, including other agents' options with an equivalent.

        :raises click.UsageError: for another agent's option, with its replacement.
        """
        if "--" in args:
            place = args.index("--")
            ctx.meta[self.LITERAL] = tuple(args[place + 1 :])
            args = args[:place]
        try:
            return super().parse_args(ctx, list(args))  # what it has read leaves the list
        except click.NoSuchOption as error:
            from pegboard_plugins.cli.foreignoptions import (  # where one is not known
                ALIASES,
                FOREIGN,
                PRINT,
            )

            if error.option_name in ALIASES:
                return self.parse_args(ctx, [_rename(each, ALIASES) for each in args])
            if error.option_name in PRINT.intersection(args):
                return self.parse_args(ctx, [each for each in args if each not in PRINT])
            if error.option_name not in FOREIGN:
                raise
            text = f"no such option {error.option_name}: {FOREIGN[error.option_name]}"
            raise click.UsageError(text, ctx) from error


def _rename(word: str, names: Mapping[str, str]) -> str:
    name, equals, value = word.partition("=")
    if not word.startswith("--") and word[:2] in names:
        name, equals, value = word[:2], "=" if word[2:] else "", word[2:]
    return f"{names.get(name, name)}{equals}{value}"


def read_stdin(stdin: BinaryIO, words: Sequence[str], warn: Callable[[str], None]) -> str:
    """Read standard input if it is a file, pipe or socket, or if a word is `-`; blocks.

    The wait for a silent pipe ends after `WAIT_S` seconds; `warn` is called with the reason.
    """
    if STDIN in words:
        return stdin.read().decode(errors="replace")
    try:
        number = stdin.fileno()
        mode = os.fstat(number).st_mode
    except (OSError, ValueError):  # it is closed
        return ""
    if stat.S_ISREG(mode):
        return stdin.read().decode(errors="replace")
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return ""
    if not select.select([number], [], [], TELL_S)[0]:
        warn("waiting for piped input; pass </dev/null if there is none")
        if not select.select([number], [], [], WAIT_S - TELL_S)[0]:
            warn(f"no piped input for {WAIT_S:g} s: continuing without it; `-` waits for ever")
            return ""
    return stdin.read().decode(errors="replace")
