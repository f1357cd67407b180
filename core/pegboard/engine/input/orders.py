"""Orders of a person other than a prompt: a slash command, a shell command."""

import msgspec

from pegboard.schema.part import FileInput


class CommandOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A slash command as the user gives it, with the files that a client attaches.

    `typed`: the arguments are a person's own words, in which mentions count.
    """

    name: str
    arguments: str = ""
    typed: bool = True
    agent: str | None = None
    model: str | None = None
    message_id: str | None = None
    variant: str | None = None
    files: tuple[FileInput, ...] = ()


class ShellOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The command line, and the agent and model that the session then goes on with."""

    command: str
    agent: str | None = None
    model: str | None = None
