"""The start options of a chat, the user's choices, and prompts that are to be sent."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self

import msgspec

from pegboard.schema.message import Prompt
from pegboard.schema.part import FileInput
from pegboard_plugins.shared.frontend import Feed


class StartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `pegboard chat` on the command line."""

    directory: Path
    continued: bool = False
    session_id: str | None = None
    attach: str | None = None
    password: str | None = None
    model: str | None = None
    agent: str | None = None
    mode: str | None = None
    trust: bool = False
    sandbox: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    replayed: int | None = 20
    prompt: str = ""


class Choices(msgspec.Struct, kw_only=True):
    """The user's choices for the next prompts; "" leaves the choice to the session."""

    agent: str = ""
    agent_before_plan: str = ""
    model: str = ""
    variant: str = ""
    mode: str = ""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt to send; if `command` is set, the text of the prompt is that command's arguments.

    `typed` is the editor's text, with placeholders for long pastes and files.
    """

    prompt: Prompt
    typed: str = ""
    command: str | None = None

    @classmethod
    def of(
        cls,
        choices: Choices,
        text: str,
        *,
        files: Sequence[FileInput] = (),
        command: str | None = None,
        typed: str = "",
    ) -> Self:
        """Create an order from a text and the user's choices."""
        prompt = Prompt(
            text,
            parts=files,
            agent=choices.agent or None,
            model=choices.model or None,
            variant=choices.variant or None,
        )
        return cls(prompt=prompt, command=command, typed=typed)

    async def send(self, feed: Feed, session_id: str) -> None:
        """Send this prompt or slash command, and return when the model has answered."""
        if self.command is None:
            await feed.prompt(session_id, self.prompt, mentions=self.text, checked=True)
        else:
            await feed.run_command(session_id, self.command, self.prompt)

    @property
    def text(self) -> str:
        """The prompt's text."""
        return self.prompt.text


Open = Callable[[StartOptions], Awaitable[Feed]]
