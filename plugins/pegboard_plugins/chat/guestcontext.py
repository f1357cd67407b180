"""The context of a plugin's slash command or key in the chat."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pegboard.display import Span
from pegboard.schema.session import Question, QuestionOption
from pegboard.unstable import shown_line
from pegboard_plugins.chat.desk import Desk
from pegboard_plugins.chat.hookspecs import ChatState


class GuestContext:
    """The `ChatContext` for one run of a plugin's slash command or key."""

    def __init__(self, chat: Desk) -> None:
        self._chat = chat
        self._asks = 0

    @property
    def waits(self) -> bool:
        """Whether the plugin's code waits for the user."""
        return self._asks > 0

    @contextmanager
    def _asking(self) -> Iterator[None]:
        self._asks += 1
        try:
            yield
        finally:
            self._asks -= 1

    @property
    def state(self) -> ChatState:
        """The state of the chat."""
        return self._chat.state

    def say(self, text: str) -> None:
        """Print lines above the footer."""
        if self._chat.talk is not None:
            self._chat.talk.say(str(text), "plain")

    async def choose(self, title: str, choices: Sequence[str]) -> str | None:
        """Let the user choose one of the choices; return None if they decline."""
        options = tuple(QuestionOption(label=str(each)) for each in choices)
        if not options:
            return None
        found = await self._asked(Question(question=title, options=options, custom=False))
        return found if any(found == option.label for option in options) else None

    async def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question, and return whether the user chose yes."""
        return await self.choose(question, ("no", "yes")) == "yes"

    async def input(self, title: str) -> str | None:
        """Ask the user for a short text."""
        return await self._asked(Question(question=title))

    async def _asked(self, question: Question) -> str | None:
        """Ask a question in the session, and return the first answer of any connected client."""
        talk = self._chat.talk
        if talk is None:
            return None
        with self._asking():
            answers = await talk.ask(question)
        return answers[0][0] if answers and answers[0] else None

    async def edit(self, text: str) -> str | None:
        """Let the user edit the text in their own editor."""
        with self._asking():
            return await self._chat.outside.edit(text)

    async def open_page(self, title: str, text: str) -> None:
        """Show a long text in the pager."""
        lines = [shown_line((Span(line),)) for line in text.split("\n")]
        with self._asking():
            await self._chat.show_page([shown_line((Span(title, "bold"),)), *lines])

    async def prompt(self, text: str) -> None:
        """Send a prompt as if the user had typed it."""
        self._chat.submit(text)
