"""The conversation of a chat: its prompts, the drawing of answers, and its session."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from pegboard import InvalidInputError, PegboardError
from pegboard.errors import AbortedError, SessionBusyError
from pegboard.schema.event import Custom, Event, MessageUpdated, PluginFailed
from pegboard.schema.message import UserMessage
from pegboard.schema.session import (
    Answers,
    Idle,
    Question,
    Session,
)
from pegboard.unstable import counted, one_line
from pegboard_plugins.chat.chatoptions import Choices, Order
from pegboard_plugins.chat.course import Course
from pegboard_plugins.chat.finished import Answered, Called, Finished, Noted, NoteStyle, rows_of
from pegboard_plugins.chat.rest import IdleWait
from pegboard_plugins.chat.unsent import is_unsent
from pegboard_plugins.shared.frontend import RESYNC, Feed, missing_files, mode_of
from pegboard_plugins.shared.terminal import Pen

if TYPE_CHECKING:
    from pegboard_plugins.shared.frontend import Facts

REPLAYED = 20
"""The number of prompts that are printed when a session is resumed."""
DRAWN_AT_ONCE = 4000
"""The maximum length of Markdown that is rendered on the event loop, not in a thread."""
BUSY = "another chat is using this session, and your message is in the editor again"
SENT_KEPT = 50
"""The maximum number of stored prompts that the model may not have read yet."""


class Talk:
    """The conversation of a chat: sends prompts to a session, and prints what it does."""

    def __init__(
        self,
        feed: Feed,
        commit: Callable[[Sequence[str]], None],
        touch: Callable[[], None],
        width: Callable[[], int],
        pen: Callable[[], Pen],
    ) -> None:
        self.feed = feed
        self.course: Course | None = None
        self.queue: list[Order] = []
        self.sent: list[Order] = []
        self.choices = Choices()
        self.warned: frozenset[str] = frozenset()
        self.on_requests: Callable[[], None] = lambda: None
        self.on_rest: Callable[[], None] = lambda: None
        self.on_unsent: Callable[[Order], None] = lambda _: None
        self._commit = commit
        self.touch = touch
        self._width = width
        self._pen = pen
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscription = feed.subscribe()
        self._underway: set[asyncio.Task[None]] = set()
        self._in_order = asyncio.Lock()
        self.rest = IdleWait(lambda: self.goes_on, touch)
        self._mode = ""  # the one that the session is known to have
        self._told: list[str] = []  # modes from here that no event has confirmed
        self._telling = asyncio.Lock()
        self._unheard = 0  # prompts from here that no event has told of
        self._taken = asyncio.Event()
        self._taken.set()
        self.asking: list[tuple[Question, asyncio.Task[Answers | None]]] = []

    @property
    def busy(self) -> bool:
        """Whether a turn runs in the session."""
        return self.course is not None and self.course.busy

    @property
    def goes_on(self) -> bool:
        """Whether a turn runs in the session, or is about to."""
        return self.busy or bool(self.queue or self._underway)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine in the background; print the error if it fails."""
        task = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except AbortedError:
            pass
        except PegboardError as error:
            if not self.has_told(error):
                self.say(str(error), "error")
                self._failures().add(str(error))

    def has_told(self, error: PegboardError) -> bool:
        """Return whether an event of this turn has already reported the error."""
        return str(error) in self._failures()

    def _failures(self) -> set[str]:
        return self.course.failures if self.course is not None else set()

    def say(self, text: str, style: NoteStyle = "dim") -> None:
        """Print a message of the chat above the footer."""
        self.draw(Noted(text, style))

    def warn_of(self, facts: "Facts") -> None:
        """Print the warnings of the project; later events with the same warnings are skipped."""
        self.warned = frozenset((*facts.warnings, *facts.known))
        for warning in facts.warnings:
            self.say(warning, "warning")

    def draw(self, piece: Finished) -> None:
        """Print a part of the conversation above the footer; `_show` prints tool calls."""
        self._commit(rows_of(piece, self._pen(), self._width()))

    async def _show(self, piece: Finished) -> None:
        if isinstance(piece, Called):
            block = await self.feed.block(piece.part, self._width() - len("  │ "))
            self._commit(rows_of(piece, self._pen(), self._width(), block))
        elif isinstance(piece, Answered) and len(piece.text) > DRAWN_AT_ONCE:
            drawing = asyncio.to_thread(rows_of, piece, self._pen(), self._width())
            self._commit(await drawing)
        else:
            self.draw(piece)

    async def hear(self) -> None:
        """Process the events of the sessions until the connection closes."""
        while events := await self._subscription.batch():
            for event in events:
                match event.properties:
                    case Custom(name=name) if name == RESYNC:
                        await self._read_anew()
                    case PluginFailed(message=message):
                        if message not in self.warned:
                            self.say(message, "warning")
                    case _ if self.course is not None:
                        was = self.course.busy
                        self._look(self.course, event)
                        for piece in self.course.take(event):
                            await self._show(piece)
                        self._adopt_mode()
                        if was and not self.course.busy:
                            self._rested()
            self.on_requests()
            self.touch()

    def _look(self, course: Course, event: Event) -> None:
        info = event.properties.info if isinstance(event.properties, MessageUpdated) else None
        is_new = isinstance(info, UserMessage) and info.summary is None
        if info is not None and is_new and info.session_id == course.session.id:
            self._taken.set()
            if course.knows_prompt(info.id):
                return
            if self._unheard:
                self._unheard -= 1
                return
            if not self._underway:  # the turn is another client's, or a command's
                self._failures().clear()
            if self.choices.agent == course.agent:  # no choice that still waits for its prompt
                self.choices.agent = ""

    async def _read_anew(self) -> None:
        if (course := self.course) is None:
            return
        was, self._unheard = course.busy, 0
        for piece in course.read(await self.feed.turns(course.session.id)):
            await self._show(piece)
        await self._state(course)
        if was and not course.busy:
            for piece in course.rest():
                await self._show(piece)
            self._rested()

    async def _state(self, course: Course) -> None:
        """Update `course` with the status, todo list, requests and subagents of the session."""
        session_id = course.session.id
        course.status = await self.feed.status(session_id) or Idle()
        for child in course.children.values():
            child.running = await self.feed.status(child.session.id) is not None
        course.todos = tuple(await self.feed.todos(session_id))
        course.waits_for(await self.feed.waiting())
        self.on_requests()

    async def resume(self, session: Session, *, replayed: int | None = REPLAYED) -> None:
        """Continue a session: print its title, and its last `replayed` prompts with their answers.

        With None nothing is printed, because everything is already on the screen.
        """
        turns = await self.feed.turns(session.id)
        for _, task in self.asking:
            task.cancel()
        self.course = course = Course(session)
        self._mode = ""
        self._told.clear()
        self._adopt_mode()
        course.status = await self.feed.status(session.id) or course.status
        prompts = [n for n, turn in enumerate(turns) if turn.info.id == turn.prompt_id]
        many = replayed or 0
        first = prompts[-many] if 0 < many <= len(prompts) else 0 if many else len(turns)
        pieces = list(course.read(turns))
        earlier = list(Course(session).read(turns[:first]))
        if replayed is not None:
            note = f" · {counted(first, 'earlier message')} not shown" if first else ""
            self.say(f"{one_line(session.title)}{note}")
        for piece in pieces[len(earlier) :]:
            await self._show(piece)
        await self._state(course)
        self.touch()

    def leave(self) -> None:
        """Leave the session; the next prompt creates a new one."""
        for _, task in self.asking:
            task.cancel()
        self.course, self._mode = None, ""
        self._told.clear()
        self.on_requests()
        self.queue.clear()
        self._underway.clear()
        self.rest.look()

    async def session(self) -> Session:
        """Return the session; create it at first use."""
        async with self._in_order:
            if self.course is None:
                self.course = Course(await self.feed.create())
            return self.course.session

    def tell_mode(self) -> None:
        """Store the chosen permission mode in the session, if there is a session yet."""
        if self.course is not None:
            self.spawn(self._tell_mode())
        self.touch()

    async def _tell_mode(self) -> None:
        assert self.course is not None
        async with self._telling:  # one by one, so that the last choice is the last to be stored
            mode = self.choices.mode
            if mode in ("", self._mode):
                return
            self._mode = mode
            self._told.append(mode)
            try:
                await self.feed.change_mode(self.course.session.id, mode)
            except BaseException:
                self._told.clear()
                raise

    def _adopt_mode(self) -> None:
        """Adopt the permission mode that another client has set, unless this chat set one later."""
        assert self.course is not None
        mode = mode_of(self.course.session)
        if mode in self._told:
            del self._told[: self._told.index(mode) + 1]
        elif mode and mode != self._mode and not self._told:
            self._mode = self.choices.mode = mode

    def order(self, text: str, **facts: Any) -> Order:  # noqa: ANN401 - an order's own fields
        """Return a prompt with the user's choices, ready to be sent; see `Order.of`."""
        return Order.of(self.choices, text, **facts)

    def send(self, order: Order) -> None:
        """Send a prompt at once; a running turn reads the prompt with its next model request."""
        self._work(self._send(order))

    def _work(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a coroutine that makes the session busy, and count the session as busy at once."""
        self._failures().clear()
        task = self.spawn(work)
        self._underway.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._underway.discard(task)
        self._next()
        self.rest.look()

    def _next(self) -> None:
        """Send the first queued prompt, unless a turn runs."""
        if self.queue and not (self.busy or self._underway):
            self.send(self.queue.pop(0))

    async def _send(self, order: Order) -> None:
        session = await self.session()
        await self._warn_of_missing(order.typed)
        self.sent = [*self.sent, order][-SENT_KEPT:]
        async with self._in_order:
            await self._taken.wait()
            self._taken.clear()
        self._unheard += 1
        try:
            await self._tell_mode()
            await order.send(self.feed, session.id)
        except PegboardError as error:
            if self._taken.is_set():
                raise
            self._unheard = max(0, self._unheard - 1)  # no event will tell of it
            self._unsent(order, error)
        finally:
            self._taken.set()

    def _unsent(self, order: Order, error: PegboardError) -> None:
        """Put a prompt that could not be sent back into the editor, and raise the error."""
        self.on_unsent(order)
        if isinstance(error, SessionBusyError) and not error.kept:
            raise InvalidInputError(BUSY) from error
        raise error

    async def _warn_of_missing(self, typed: str) -> None:
        facts = self.feed.facts
        if "@" in typed and not facts.server:
            for warning in await asyncio.to_thread(missing_files, typed, facts.directory):
                self.say(warning, "warning")

    def typed_as(self, text: str) -> str | None:
        """Return what the user typed for the sent `text`; None if another client sent the text."""
        return next((order.typed for order in reversed(self.sent) if order.text == text), None)

    async def ask(self, question: Question) -> Answers | None:
        """Ask a plugin's question, and return the answers from any client.

        The result is None when the user switches to another session.
        """
        session = await self.session()
        asked = question, asyncio.create_task(self.feed.ask(session.id, (question,)))
        self.asking.append(asked)
        task = asked[1]
        try:
            await asyncio.wait({task})
            return None if task.cancelled() else task.result()
        finally:
            task.cancel()
            self.asking.remove(asked)

    def shell(self, order: Order) -> None:
        """Run the user's shell command, and add its output to the session."""
        self._work(self._shell(order))

    async def _shell(self, order: Order) -> None:
        try:
            await self.feed.shell((await self.session()).id, order.prompt)
        except PegboardError as error:
            if not is_unsent(error):
                raise
            self._unsent(order, error)

    def later(self, order: Order) -> None:
        """Queue a prompt until the session is idle."""
        self.queue.append(order)
        self._next()
        self.touch()

    def stop(self) -> list[Order]:
        """Stop the turn, and return the queued prompts."""
        queued, self.queue = self.queue, []
        self.rest.look()
        if self.course is not None:
            self.spawn(self._stop(self.course.session.id))
        return queued

    async def _stop(self, session_id: str) -> None:
        """Stop the session's turn, even while the request with the prompt is under way."""
        is_taken = self._taken.is_set()
        await self.feed.abort(session_id)
        if not is_taken:
            async with self._in_order:
                await self._taken.wait()
                await self.feed.abort(session_id)

    def _rested(self) -> None:
        self.on_rest()
        self._next()
        self.rest.look()

    def conclude(self) -> None:
        """Draw the unfinished answer, because the chat is about to end."""
        for piece in self.course.texts_end() if self.course is not None else ():
            self.draw(piece)

    async def aclose(self) -> None:
        """Close the connection to the sessions, and cancel all background work."""
        self.queue.clear()
        self._subscription.close()
        await self.feed.aclose()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
