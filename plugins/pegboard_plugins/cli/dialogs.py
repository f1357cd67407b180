"""Permission requests and questions on a terminal: the text, what is typed, the reply."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TextIO, TypeVar

import msgspec

from pegboard.errors import NotFoundError
from pegboard.schema.session import PermissionRequest, Question, QuestionRequest, Reply, Scope
from pegboard_plugins.cli.backend import Backend
from pegboard_plugins.cli.render import always_lines, question_lines, request_lines
from pegboard_plugins.cli.screen import Screen

QUESTION = "Allow? A letter, or what to do instead: "
FOR_AGENT = "@"
"""Behind a letter for good: for the agent that asked alone."""
ONE_NUMBER = "A number, or an answer of your own; - for none: "
SEVERAL_NUMBERS = "Numbers with commas, or an answer of your own; - for none: "
NO_ANSWER = "-"
NOBODY = "nobody is there to be asked"
_Value = TypeVar("_Value")
_LINE_BYTES = 4096
"""A terminal gives no longer line than this."""
_WORDS: dict[str, Reply] = {"y": "once", "yes": "once", "n": "reject", "no": "reject"}
_SCOPES: dict[str, Scope] = {
    "s": "session",
    "session": "session",
    "a": "project",
    "always": "project",
    "u": "user",
    "user": "user",
}


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed at the question; a message rejects and says what to do instead."""

    reply: Reply
    message: str | None = None
    scope: Scope = "project"
    agent_only: bool = False


def read_reply(line: str | None, *, once: bool = False) -> Typed | None:
    """The reply that a line means; the end of input rejects.

    None is for an empty line, and for an answer for good where there is none: `once`.
    """
    if line is None:
        return Typed(reply="reject")
    word = line.strip()
    lower = word.lower()
    if lower in _WORDS:
        return Typed(reply=_WORDS[lower])
    scope = _SCOPES.get(lower.removesuffix(FOR_AGENT))
    if not word or (scope and once):
        return None
    if scope:
        return Typed(reply="always", scope=scope, agent_only=lower.endswith(FOR_AGENT))
    return Typed(reply="reject", message=word)


def read_answer(line: str | None, question: Question) -> tuple[str, ...] | None:
    """The labels that a line chooses, or the line itself; None for one that says nothing.

    The numbers of the options count from 1; one that does not exist is no answer. The end of
    input and `-` choose nothing.
    """
    if line is None:
        return ()
    typed = line.strip()
    if typed == NO_ANSWER:
        return ()
    numbers = [word.strip() for word in typed.split(",")]
    if not all(word.isdecimal() for word in numbers):
        return (typed,) if typed and question.custom else None
    places = sorted({int(word) - 1 for word in numbers})
    if len(places) > 1 and not question.multiple:
        return None
    if places[0] < 0 or places[-1] >= len(question.options):
        return None
    return tuple(question.options[place].label for place in places)


class Refuser:
    """Says no where nobody is there to be asked; an App of one's own then asks nothing at all.

    Other clients of a server have `wait_s` seconds to answer, until once none of them has.
    """

    def __init__(self, backend: Backend, *, wait_s: float, tell: Callable[[str], None]) -> None:
        self._backend = backend
        self._wait_s = wait_s
        self._tell = tell

    async def refuse(self, request: PermissionRequest | QuestionRequest) -> None:
        """Wait for another client, then say no; who cancels it has heard of an answer."""
        if isinstance(request, QuestionRequest) and request.tool is None:
            return  # what a server asks by itself holds nobody up
        reason = NOBODY
        if self._wait_s:
            self._tell(_waiting(request, self._wait_s))
            await asyncio.sleep(self._wait_s)
            reason, self._wait_s = f"nobody has answered within {self._wait_s:g} s", 0
        with suppress(NotFoundError):
            if isinstance(request, PermissionRequest):
                await self._backend.reply(request.id, "reject", reason)
            else:
                await self._backend.reject_question(request.id)


def _waiting(request: PermissionRequest | QuestionRequest, wait_s: float) -> str:
    if isinstance(request, PermissionRequest):
        what = f"{request.permission} {', '.join(request.patterns)}"
    else:
        what = "; ".join(each.question for each in request.questions)
    return f"waiting {wait_s:g} s for another client of the server to answer: {what}"


class Asker:
    """Asks the person at the terminal, one request after the other, without a time limit."""

    def __init__(self, backend: Backend, screen: Screen, terminal: TextIO) -> None:
        self._backend = backend
        self._screen = screen
        self._terminal = terminal

    async def ask(self, request: PermissionRequest | QuestionRequest) -> None:
        """Ask until there is a reply, and pass it on."""
        try:
            if isinstance(request, PermissionRequest):
                await self._permission(request)
            else:
                await self._questions(request)
        except NotFoundError:
            return  # the call was stopped while the question stood
        except asyncio.CancelledError:
            self._screen.question("\n")  # nobody ends its line any more
            raise

    async def _permission(self, request: PermissionRequest) -> None:
        once = bool(request.metadata.get("once"))
        for line in (*request_lines(request), *always_lines(request)):
            self._screen.line(line)
        typed = await self._typed(QUESTION, partial(read_reply, once=once))
        if typed.reply == "always":
            await self._backend.approve(request.id, typed.scope, agent_only=typed.agent_only)
        else:
            await self._backend.reply(request.id, typed.reply, typed.message)

    async def _questions(self, request: QuestionRequest) -> None:
        answers = []
        for question in request.questions:
            for line in question_lines(question):
                self._screen.line(line)
            prompt = SEVERAL_NUMBERS if question.multiple else ONE_NUMBER
            answers.append(await self._typed(prompt, partial(read_answer, question=question)))
        if any(answers):
            await self._backend.answer(request.id, answers)
        else:
            await self._backend.reject_question(request.id)

    async def _typed(self, prompt: str, read: Callable[[str | None], _Value | None]) -> _Value:
        """What the first line means that means something."""
        _forget_typed(self._terminal.fileno())
        value = None
        while value is None:
            self._screen.question(prompt)
            value = read(await _read_line(self._terminal.fileno()))
        return value


def _forget_typed(terminal: int) -> None:
    """Drop what was typed before the question: it cannot be meant as its answer."""
    import termios

    termios.tcflush(terminal, termios.TCIFLUSH)


async def _read_line(terminal: int) -> str | None:
    """The next line, None at the end of input."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(terminal, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(terminal)
    line = os.read(terminal, _LINE_BYTES)
    return line.decode(errors="replace") if line else None
