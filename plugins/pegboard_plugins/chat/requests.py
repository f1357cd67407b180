"""The dialogs of the engine's requests: permission to do something, the model's questions."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice

import msgspec
from rich.cells import cell_len

from pegboard.kit import Span
from pegboard.schema.session import PermissionRequest, Question, QuestionRequest, Reply, Scope
from pegboard_plugins.chat.modes import Choice, Item, SpanLine
from pegboard_terminal import counted, exposed, one_line, permission_lines, shown_line, wrapped

DIGITS = 9
MOST_ROWS = 5_000
"""Of what is asked, to scroll through; the page has all of it."""
SHOWN_LETTERS = 4_000
"""Of a reason or a pattern, of which few rows are shown."""
_ALWAYS_ONCE = "this is asked every time"
_INSTEAD = "What to do instead, enter sends it, esc goes back"
_NARROWER = "What to allow here from now on, a pattern a line; enter allows it, esc goes back"
_VERY_TEXT = "3 is for the very text that is asked for: there is nothing to edit"


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """How a permission request is to be answered."""

    reply: Reply
    message: str | None = None
    scope: Scope = "project"
    patterns: tuple[str, ...] = ()


class Permission:
    """A permission request: what exactly, why it is asked, and five answers."""

    is_unasked = True

    def __init__(
        self,
        request: PermissionRequest,
        settle: Callable[[PermissionRequest, Settled | None], None],
        place: str = "",
    ) -> None:
        self.request = request
        self.place = place
        self._settle = settle
        self._scroll = 0
        self._written = ""
        self._once = bool(request.metadata.get("once"))
        self.refusal = ""

    @property
    def edits(self) -> bool:
        """Only while a text is written: what to do instead, or a narrower pattern."""
        return bool(self._written)

    @property
    def _can_narrow(self) -> bool:
        """Whether an approval for good would be for more than the very text, in single lines."""
        always = self.request.always
        return any(each not in self.request.patterns for each in always) and not any(
            "\n" in each for each in always
        )

    def lines(self, width: int, room: int) -> Sequence[SpanLine]:
        """The title, the whole of what is asked as far as it fits, the reason, the answers."""
        reason = self.request.metadata.get("reason")
        why = (
            wrapped((Span(exposed(reason[:SHOWN_LETTERS]), "dim"),), width)
            if isinstance(reason, str)
            else ()
        )
        choices = self._choices(width)
        body = self._body(max(10, width - 2))
        fixed = [*list(why)[:2], *choices]
        space = max(1, room - 1 - len(fixed))
        self._scroll = max(0, min(self._scroll, len(body) - space))
        shown = [(Span("  "), *row) for row in body[self._scroll : self._scroll + space]]
        return [self._title(len(body) - len(shown)), *shown, *fixed]

    @lru_cache(maxsize=1)  # noqa: B019 - the dialog is short-lived
    def _body(self, width: int) -> Sequence[SpanLine]:
        """What is asked in rows, made once: each frame shows a few of them."""
        lines = permission_lines(self.request, most=MOST_ROWS + 1)
        every = (row for line in lines for row in wrapped(line, width))
        rows = list(islice(every, MOST_ROWS + 1))
        if len(rows) > MOST_ROWS:
            rows[-1] = (Span("… this is too long to scroll: v shows all of it", "warning"),)
        return rows

    def _title(self, hidden: int) -> SpanLine:
        agent = self.request.metadata.get("agent")
        who = f" · agent {agent}" if agent else ""
        more = f" · {counted(hidden, 'more line')}: ↑ ↓ v" if hidden else ""
        title = Span(f"Permission{self.place}: {self.request.permission}", "warning")
        return shown_line((title, Span(f"{more}{who}", "dim")))

    def whole_text(self) -> Sequence[SpanLine]:
        """All of it, for a page of its own."""
        always = () if self._once else (self._always(),)
        return [
            *permission_lines(self.request),
            (Span(""),),
            *((Span(exposed(each)),) for each in always),
        ]

    def _choices(self, width: int) -> Sequence[SpanLine]:
        texts = [self._written] if self._written else _flowing(self._answers(width), width)
        spans = [Span(text, "bold") for text in texts]
        if self.refusal:
            spans.append(Span(exposed(one_line(self.refusal, 4 * width)), "warning"))
        return [row for span in spans for row in wrapped((span,), width)]

    def _answers(self, width: int) -> Sequence[str]:
        always = one_line(exposed(self._always()[:SHOWN_LETTERS]), 2 * width)
        edit = " (e edits it)" if self._can_narrow else ""
        more = (_ALWAYS_ONCE,) if self._once else ("2 s this session", f"3 a {always}{edit}")
        return ("1 y once", *more, "4 n no", "5 w no, and why", "esc no and stop")

    def _always(self) -> str:
        return f"always here: {', '.join(self.request.always) or 'the same again'}"

    def press(self, key: str) -> bool:
        """Answer or scroll."""
        if self._written:
            if key == "escape":
                self._written = self.refusal = ""
                return True
            return False
        steps = {"up": -1, "down": 1, "pageup": -5, "pagedown": 5}
        if key in steps:
            self._scroll += steps[key]
        elif key in ("5", "w"):
            self._written, self.refusal = _INSTEAD, ""
        elif key == "e":
            self._edit()
        elif (settled := self._answer(key)) is not None:
            self._settle(self.request, settled)
        elif key == "escape":
            self._settle(self.request, None)
        return True

    def _edit(self) -> None:
        if self._can_narrow and not self._once:
            self._written, self.refusal = _NARROWER, ""
        else:
            self.refusal = "" if self._once else _VERY_TEXT

    def _answer(self, key: str) -> Settled | None:
        if key in ("1", "y"):
            return Settled(reply="once")
        if key in ("2", "s") and not self._once:
            return Settled(reply="always", scope="session")
        if key in ("3", "a") and not self._once:
            return Settled(reply="always", scope="project")
        if key in ("4", "n"):
            return Settled(reply="reject")
        return None

    def submit(self, text: str) -> None:
        """Refuse, with what to do instead, or allow what the patterns in the lines match."""
        if self._written == _NARROWER:
            patterns = tuple(filter(str.strip, text.split("\n")))
            if patterns:
                self._settle(self.request, Settled(reply="always", patterns=patterns))
            return
        self._settle(self.request, Settled(reply="reject", message=text.strip() or None))

    def changed(self, text: str) -> None:
        """Nothing: the text counts when it is sent."""

    def close(self) -> None:
        """Nothing: it was answered elsewhere."""


def _flowing(words: Sequence[str], width: int) -> list[str]:
    """The words in rows, none of them cut unless it is wider than a row."""
    rows = [words[0]]
    for word in words[1:]:
        longer = f"{rows[-1]} · {word}"
        if cell_len(longer) <= width:
            rows[-1] = longer
        else:
            rows.append(word)
    return rows


class Questions:
    """Questions of the model or of a plugin, one after the other.

    `is_own`: the person has just called for it here, so that no key is meant for something else.
    """

    def __init__(
        self,
        request: QuestionRequest,
        settle: Callable[[QuestionRequest, Sequence[Sequence[str]] | None], None],
        place: str = "",
        *,
        is_own: bool = False,
    ) -> None:
        self.request = request
        self.place = place
        self._settle = settle
        self._is_own = is_own
        self._answers: list[tuple[str, ...]] = []
        self._chosen: set[int] = set()
        self._own = False
        self._list = self._listed()

    @property
    def is_unasked(self) -> bool:
        """Whether the model or a plugin asks by itself."""
        return not self._is_own

    @property
    def _question(self) -> Question:
        return self.request.questions[len(self._answers)]

    def _listed(self) -> Choice | None:
        """A list to search, where digits do not reach all answers, or where one was called for."""
        question = self._question
        many = len(question.options) > DIGITS or (self._is_own and bool(question.options))
        if question.multiple or not many:
            return None
        items = [Item(value=each.label, note=each.description) for each in question.options]
        return Choice(question.question, items)

    @property
    def edits(self) -> bool:
        """While an answer of one's own is written, or a list is searched."""
        return self._own or self._list is not None or not self._question.options

    def lines(self, width: int, room: int) -> Sequence[SpanLine]:
        """The question and its numbered answers."""
        if self._list is not None:
            return self._list.lines(width, room)
        question = self._question
        many = len(self.request.questions)
        number = f" ({len(self._answers) + 1} of {many})" if many > 1 else ""
        head = shown_line((Span(f"Question{self.place}{number}: {question.question}", "warning"),))
        rows: list[SpanLine] = list(wrapped(head, width))[:3]
        for place, option in enumerate(question.options):
            mark = "[x] " if place in self._chosen else ""
            text = Span(f"  {place + 1} {mark}{option.label}")
            rows.append(shown_line((text, Span(f"  {option.description}", "dim"))))
        own = " · o an answer of your own" if question.custom and question.options else ""
        several = " · several, then enter" if question.multiple else ""
        note = "write, then enter" if self.edits else f"a number{several}{own}"
        return [*rows[: room - 1], (Span(f"{note} · esc no answer", "dim"),)]

    def press(self, key: str) -> bool:
        """Choose by number."""
        if key == "escape":
            if self._own:
                self._own = False
            else:
                self._settle(self.request, None)
            return True
        if self._list is not None:
            return self._list.press(key)
        if self.edits:
            return False
        if key == "o" and self._question.custom:
            self._own = True
        elif key == "enter" and self._chosen:
            self._take(tuple(self._question.options[n].label for n in sorted(self._chosen)))
        elif key.isdecimal() and 0 < int(key) <= len(self._question.options):
            self._number(int(key) - 1)
        return True

    def _number(self, place: int) -> None:
        if self._question.multiple:
            self._chosen ^= {place}
        else:
            self._take((self._question.options[place].label,))

    def _take(self, answer: tuple[str, ...]) -> None:
        self._answers.append(answer)
        self._chosen, self._own = set(), False
        if len(self._answers) < len(self.request.questions):
            self._list = self._listed()
        else:
            answers, self._answers = self._answers, []
            self._settle(self.request, answers)

    def submit(self, text: str) -> None:
        """Take an answer of one's own, or the chosen one of the list."""
        if self._list is not None:
            self._list.submit(text)
            chosen = self._list.answer.result() if self._list.answer.done() else None
            own = text.strip() if self._question.custom else ""
            if chosen or own:
                self._take((chosen or own,))
        elif text.strip():
            self._take((text.strip(),))

    def changed(self, text: str) -> None:
        """Narrow the list; another text counts when it is sent."""
        if self._list is not None:
            self._list.changed(text)

    def close(self) -> None:
        """Nothing: they were answered elsewhere."""
