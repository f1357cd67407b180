"""Permission requests and questions on a terminal: how they are displayed and answered."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, TextIO, TypeVar

import msgspec

from pegboard.display import escape_controls
from pegboard.errors import NotFoundError
from pegboard.schema.session import PermissionRequest, Question, QuestionRequest, Reply, Scope
from pegboard.unstable import exposed
from pegboard_plugins.cli.render import Line, OutputScreen
from pegboard_plugins.shared.terminal import CONFIRM, HELD_S, QUIET_S, permission_lines

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Feed

QUESTION = "Allow? One of these keys: "
INSTEAD = "What to do instead: "
WHY = "w"
END_OF_INPUT = "\x04"
ENTER = b"\n"
ONE_NUMBER = "A number, or an answer of your own; - for none: "
SEVERAL_NUMBERS = "Numbers with commas, or an answer of your own; - for none: "
NO_ANSWER = "-"
_Value = TypeVar("_Value")
_LINE_BYTES = 4096
"""The maximum length of a terminal's line."""
_KEY_BYTES = 64
_KEYS_WIDTH = len("s@ a@ u@")
_SCOPES: dict[str, Scope] = {"s": "session", "a": "project", "u": "user"}


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """The user's typed reply to a permission request.

    A `message` rejects the request and tells the model what to do instead.
    """

    reply: Reply
    message: str | None = None
    scope: Scope = "project"
    agent_only: bool = False


def read_key(key: str, *, once: bool = False) -> Typed | None:
    """Return the reply to a permission request that a key means, or None for any other key.

    A capital letter limits the reply to the agent that asked. With `once`, keys for lasting
    approvals return None.
    """
    if key == "y":
        return Typed(reply="once")
    if key in ("n", END_OF_INPUT):
        return Typed(reply="reject")
    scope = None if once else _SCOPES.get(key.lower())
    return Typed(reply="always", scope=scope, agent_only=key.isupper()) if scope else None


def read_answer(line: str | None, question: Question) -> tuple[str, ...] | None:
    """Return the labels of the chosen options, or the typed text; None if the line is invalid.

    Options are numbered from 1. The end of input and `-` choose nothing, so they return ().
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


class Asker:
    """A dialog with the user at the terminal, for one request at a time; it has no time limit."""

    def __init__(self, feed: "Feed", screen: OutputScreen, terminal: TextIO) -> None:
        self._feed = feed
        self._screen = screen
        self._terminal = terminal

    async def ask(self, request: PermissionRequest | QuestionRequest) -> None:
        """Ask the user until a reply is valid, and send the reply."""
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
        typed = await self._read_reply(once=once)
        if typed.reply == "always":
            await self._feed.approve(request.id, typed.scope, agent_only=typed.agent_only)
        else:
            await self._feed.reply(request.id, typed.reply, typed.message)

    async def _read_reply(self, *, once: bool) -> Typed:
        """Read keys until one is a valid reply, and return the reply."""
        terminal = self._terminal.fileno()
        with _key_by_key(terminal):
            await _pause(terminal)
            self._screen.question(QUESTION)  # keys count from now on
            while (key := await self._read_choice(terminal, once=once)) is None:
                await _pause(terminal)
                self._screen.question(f"\n{QUESTION}")
        self._screen.question("\n")
        if (typed := read_key(key, once=once)) is None:
            self._screen.question(INSTEAD)
            message = await _read_line(terminal)
            typed = Typed(reply="reject", message=(message or "").strip() or None)
        return typed

    async def _read_choice(self, terminal: int, *, once: bool) -> str | None:
        """Read a single key and return it; return None if the key is no valid reply.

        For a lasting approval, the user also has to confirm with Enter.
        """
        key, rest = await _read_key(terminal)
        typed = read_key(key, once=once)
        if rest.strip() or (typed is None and key != WHY):
            return None
        self._screen.question(key if key.isprintable() else "")
        if typed is not None and typed.reply == "always" and not rest:
            alone = ", for this agent alone" if typed.agent_only else ""
            self._screen.question(f"  {CONFIRM[typed.scope]}{alone} ")
            if await _read(terminal, _KEY_BYTES) != ENTER:
                return None
        return key

    async def _questions(self, request: QuestionRequest) -> None:
        answers = []
        for question in request.questions:
            for line in question_lines(question):
                self._screen.line(line)
            prompt = SEVERAL_NUMBERS if question.multiple else ONE_NUMBER
            answers.append(await self._read_value(prompt, partial(read_answer, question=question)))
        await self._feed.answer(request.id, answers if any(answers) else None)

    async def _read_value(self, prompt: str, read: Callable[[str | None], _Value | None]) -> _Value:
        """Read lines until `read` converts a line to a value, not None, and return this value."""
        with _key_by_key(self._terminal.fileno()):
            await _pause(self._terminal.fileno())
        value = None
        while value is None:
            self._screen.question(prompt)
            value = read(await _read_line(self._terminal.fileno()))
        return value


@contextmanager
def _key_by_key(terminal: int) -> Iterator[None]:
    """Read keys one at a time and without echo within the context; drop earlier input."""
    import termios
    import tty

    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSAFLUSH)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


async def _pause(terminal: int) -> None:
    """Discard input for the shell, until the user has typed nothing for `QUIET_S` seconds."""
    typed = b"?"
    with suppress(TimeoutError):
        while typed:  # nothing is the end of input
            async with asyncio.timeout(QUIET_S):
                typed = await _read(terminal, _LINE_BYTES)


async def _read_key(terminal: int) -> tuple[str, bytes]:
    """Read the next key, and any further bytes that arrive with it.

    Further bytes show that the user pasted or typed a text instead of a single key.
    """
    typed = await _read(terminal, _KEY_BYTES)
    key, rest = typed[:1].decode(errors="replace") or END_OF_INPUT, typed[1:]
    if not rest:
        with suppress(TimeoutError):
            async with asyncio.timeout(HELD_S):
                rest = await _read(terminal, _LINE_BYTES)
    return key, rest


async def _read_line(terminal: int) -> str | None:
    """Read the next line; return None at the end of input."""
    line = await _read(terminal, _LINE_BYTES)
    return line.decode(errors="replace") if line else None


async def _read(terminal: int, limit: int) -> bytes:
    """Read the next input bytes, at most `limit`; wait for the user as long as necessary."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(terminal, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(terminal)
    return os.read(terminal, limit)


def request_lines(request: PermissionRequest) -> tuple[Line, ...]:
    """Return the lines of a permission request, complete and uncut."""
    from pegboard.unstable import user_words  # most runs ask nothing

    head = Line(head="permission", text=escape_controls(request.permission), style="warning")
    asked = (Line(spans=line, indent=1) for line in permission_lines(request))
    reason = request.metadata.get("reason")
    why = (
        (Line(text=exposed(user_words(reason)), style="dim", indent=1),)
        if isinstance(reason, str)
        else ()
    )
    return head, *asked, *why


def always_lines(request: PermissionRequest) -> tuple[Line, ...]:
    """Return the lines about the answers to a request, and about what a lasting approval allows."""
    refusals = (_choice("n", "no"), _choice("w", "no, and what to do instead"))
    if request.metadata.get("once"):
        asked = Line(text="asked every time", style="dim", indent=1)
        return asked, _choice("y", "yes, once"), *refusals
    names = (f"any {request.permission}",) if request.always == ("*",) else request.always
    patterns = ", ".join(map(exposed, names))
    agent = request.metadata.get("agent")
    alone = (_choice("S A U", f"the same for the agent {escape_controls(str(agent))} alone"),)
    return (
        Line(text=f"always allows: {patterns or 'the same again'}", style="dim", indent=1),
        _choice("y", "yes, once"),
        _choice("s", "always in this session"),
        _choice("a", "always in this project"),
        _choice("u", "always in all of your projects"),
        *(alone if agent else ()),
        *refusals,
    )


def _choice(key: str, text: str) -> Line:
    return Line(head=f"{key:<{_KEYS_WIDTH}}", text=text, style="dim", indent=1)


def question_lines(question: Question) -> tuple[Line, ...]:
    """Return the lines of a question with its options, numbered from 1."""
    options = tuple(
        Line(
            head=f"{number}. {escape_controls(option.label)}",
            text=escape_controls(option.description),
            indent=1,
        )
        for number, option in enumerate(question.options, start=1)
    )
    return Line(head="question", text=escape_controls(question.question), style="warning"), *options
