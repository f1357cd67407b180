"""The dialogs of the engine's requests: permission to do something, the model's questions."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice

import msgspec

from pegboard.display import Span
from pegboard.schema.session import PermissionRequest, Question, QuestionRequest, Reply, Scope
from pegboard.unstable import exposed, one_line, shown_line
from pegboard_plugins.chat.answerlist import AnswerList, ListedAnswer
from pegboard_plugins.chat.modes import Choice, Item, SpanLine
from pegboard_plugins.shared.terminal import permission_lines, wrapped

DIGITS = 9
MOST_ROWS = 5_000
"""Of what is asked, to scroll through; the page has all of it."""
SHOWN_LETTERS = 4_000
"""Of a reason or a pattern, of which few rows are shown."""
BODY_ROWS = 6
"""Rows of what is asked that come before a row of its own for each answer."""
REASON_ROWS = 2
ALWAYS_LETTERS = 120
"""Of the patterns in an answer; the page has all of them."""
TITLE_LETTERS = 60
"""Of a pattern in the title, where there is no room for what is asked."""
HEAD_ROWS = 3
"""Of a question."""
_ALWAYS_ONCE = "asked every time"
_INSTEAD = "Tell the agent what to do instead · Enter sends it · Esc goes back"
_NARROWER = "Always allow in this project, one pattern per line · Enter saves · Esc goes back"
_VERY_TEXT = "`a` allows exactly this: there is no pattern to change"
_STEPS = {"up": -1, "down": 1, "s-tab": -1, "tab": 1}


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """How a permission request is to be answered."""

    reply: Reply
    message: str | None = None
    scope: Scope = "project"
    patterns: tuple[str, ...] = ()


def allowed(request: PermissionRequest, settled: Settled) -> str:
    """Return the line of the transcript that says what is allowed from now on."""
    what = ", ".join(settled.patterns or request.always or request.patterns)
    asked = one_line(exposed(f"{request.permission} {what}"[:SHOWN_LETTERS]), SHOWN_LETTERS)
    return f"allowed from now on in this {settled.scope}: {asked}"


class Permission:
    """A permission request: what exactly, why it is asked, and the answers."""

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
        self._page = 1
        self._written = ""
        self._once = bool(request.metadata.get("once"))
        self._answers = AnswerList(self._listed())
        self.refusal = ""
        self.begun = ""  # what the editor is given to begin with

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

    def _listed(self) -> Sequence[ListedAnswer]:
        always, answers = self._always(), [ListedAnswer(key="y", text="Yes, once", short="once")]
        if not self._once:
            answers += [
                ListedAnswer(key="s", text=f"Yes, in this session: {always}", short="session"),
                ListedAnswer(
                    key="a", text=f"Yes, always in this project: {always}", short=f"always {always}"
                ),
            ]
            if self._can_narrow:
                text = "Yes, always in this project, with a pattern that I write"
                answers.append(ListedAnswer(key="e", text=text, short="pattern"))
        return [
            *answers,
            ListedAnswer(key="n", text="No", short="no"),
            ListedAnswer(key="w", text="No, and tell the agent what to do instead", short="why"),
            ListedAnswer(key="escape", text="No, and stop", short="stop"),
        ]

    def _always(self) -> str:
        always = self.request.always
        what = f"any {self.request.permission}" if always == ("*",) else ", ".join(always)
        return one_line(exposed(what[:SHOWN_LETTERS]), ALWAYS_LETTERS) or "exactly this"

    def lines(self, width: int, room: int) -> Sequence[SpanLine]:
        """Return the title, as much as fits of what is asked, the reason, and the answers.

        The answers are the last to go: first the reason makes room, then what is asked, which
        then can be scrolled.
        """
        body = self._body(max(10, width - 2))
        beside = 1 + min(len(body), BODY_ROWS)
        answers = self._asking(width, room, max(1, room - beside))
        rest = max(0, room - len(answers))
        why = self._reason(width)[: max(0, rest - beside)]
        space = max(0, rest - 1 - len(why))
        self._page = max(1, space - 1)
        self._scroll = max(0, min(self._scroll, len(body) - space))
        shown = [(Span("  "), *row) for row in body[self._scroll : self._scroll + space]]
        return [*[self._title(len(shown), len(body))][:rest], *shown, *why, *answers]

    def _asking(self, width: int, room: int, wanted: int) -> Sequence[SpanLine]:
        """Return the answers in `wanted` rows, or in as few as there must be."""
        refusal = exposed(one_line(self.refusal, 4 * width))
        why = [*wrapped((Span(refusal, "warning"),), width, at_words=True)] if refusal else []
        if self._written:
            return [*wrapped((Span(self._written, "bold"),), width, at_words=True), *why][-room:]
        least = self._answers.least(width) + len(why)
        rows = self._answers.rows(width, max(min(least, room), wanted) - len(why))
        return [*rows, *why][:room]

    @lru_cache(maxsize=1)  # noqa: B019 - the dialog is short-lived
    def _body(self, width: int) -> Sequence[SpanLine]:
        """Return the rows of the request, made once: each frame shows a few of them."""
        lines = permission_lines(self.request, most=MOST_ROWS + 1)
        every = (row for line in lines for row in wrapped(line, width))
        rows = list(islice(every, MOST_ROWS + 1))
        if len(rows) > MOST_ROWS:
            rows[-1] = (Span("… too long to scroll: v shows everything", "warning"),)
        return rows

    def _reason(self, width: int) -> Sequence[SpanLine]:
        reason = self.request.metadata.get("reason")
        reasons = [reason[:SHOWN_LETTERS]] if isinstance(reason, str) else []
        why = " · ".join([*reasons, _ALWAYS_ONCE] if self._once else reasons)
        rows = wrapped((Span(exposed(why), "dim"),), width, at_words=True)
        return list(islice(rows, REASON_ROWS)) if why else ()

    def _title(self, shown: int, every: int) -> SpanLine:
        agent = self.request.metadata.get("agent")
        who = f" · agent {agent}" if agent else ""
        first, last = self._scroll + 1, self._scroll + shown
        rows = f"rows {first}-{last} of {every:,} · PgUp PgDn" if shown else f"{every:,} rows"
        part = f" · {rows} · v shows all" if shown < every else ""
        what = self.request.permission
        if not shown:
            first_pattern = next(iter(self.request.patterns), "")[:SHOWN_LETTERS]
            what = one_line(exposed(f"{what} {first_pattern}".strip()), TITLE_LETTERS)
        title = Span(f"Allow {what}?{self.place}", "warning")
        return shown_line((title, Span(f"{part}{who}", "dim")))

    def whole_text(self) -> Sequence[SpanLine]:
        """All of it, for a page of its own."""
        always = ", ".join(self.request.always) or "exactly this"
        answer = () if self._once else (Span(exposed(f"`a` allows in this project: {always}")),)
        return [*permission_lines(self.request), (Span(""),), answer]

    def press(self, key: str) -> bool:
        """Answer, mark another answer, or scroll; `s-tab` is for the mode, which may answer."""
        if key == "s-tab":
            return False
        if self._written:
            if key == "escape":
                self._written = self.refusal = ""
                return True
            return False
        if key in _STEPS:
            self._answers.move(_STEPS[key])
        elif key in ("pageup", "pagedown"):
            self._scroll += self._page if key == "pagedown" else -self._page
        else:
            return self._choose(self._answers.marked.key if key == "enter" else key)
        return True

    def _choose(self, key: str) -> bool:
        if key in ("5", "w"):
            self._written, self.refusal = _INSTEAD, ""
        elif key == "e":
            self._edit()
        elif (settled := self._answer(key)) is not None:
            self._settle(self.request, settled)
        elif key == "escape":
            self._settle(self.request, None)
        else:
            return key == "v"  # the keyboard opens the page
        return True

    def _edit(self) -> None:
        if self._can_narrow and not self._once:
            self._written, self.refusal = _NARROWER, ""
            self.begun = "\n".join(self.request.always)
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
        self._begin()

    @property
    def is_unasked(self) -> bool:
        """Whether the model or a plugin asks by itself."""
        return not self._is_own

    @property
    def _question(self) -> Question:
        return self.request.questions[len(self._answers)]

    def _begin(self) -> None:
        """Show the next question: its answers as rows, or a list to search.

        The list is for more answers than there are digits, and for one that was called for.
        """
        question = self._question
        many = len(question.options) > DIGITS or (self._is_own and bool(question.options))
        items = [Item(value=each.label, note=each.description) for each in question.options]
        self._list = Choice(question.question, items) if many and not question.multiple else None
        self._at = 0
        self._chosen: set[int] = set()
        self._own = False

    @property
    def edits(self) -> bool:
        """While an answer of one's own is written, or a list is searched."""
        return self._own or self._list is not None or not self._question.options

    def lines(self, width: int, room: int) -> Sequence[SpanLine]:
        """Draw the question and its answers, which go last when room is short."""
        if self._list is not None:
            return self._list.lines(width, room)
        question = self._question
        many = len(self.request.questions)
        number = f" ({len(self._answers) + 1} of {many})" if many > 1 else ""
        head = shown_line((Span(f"Question{self.place}{number}: {question.question}", "warning"),))
        heads: list[SpanLine] = list(islice(wrapped(head, width, at_words=True), HEAD_ROWS))
        if self.edits:
            back = "back" if self._own else "skips it"
            written = (Span(f"Type your answer · Enter sends it · Esc {back}", "dim"),)
            return [*heads[: max(0, room - 1)], written]
        listed = self._listed()
        answers = listed.rows(width, max(min(listed.least(width), room), room - len(heads)))
        return [*heads[: max(0, room - len(answers))], *answers]

    def _listed(self) -> AnswerList:
        question = self._question
        listed = [
            ListedAnswer(
                key=str(number) if number <= DIGITS else " ",
                text=f"{self._mark(number - 1)}{option.label}",
                short=f"{self._mark(number - 1)}{option.label}",
                note=option.description,
            )
            for number, option in enumerate(question.options, start=1)
        ]
        if question.custom:
            listed.append(ListedAnswer(key="o", text="Type your own answer", short="own"))
        if question.multiple:
            text = "Send the answers that are marked [x]; a number or Space marks one"
            listed.append(ListedAnswer(key="enter", text=text, short="send"))
        listed.append(ListedAnswer(key="escape", text="Skip the question", short="skip"))
        found = AnswerList(listed)
        found.move(self._at)
        return found

    def _mark(self, place: int) -> str:
        marks = ("[ ] ", "[x] ") if self._question.multiple else ("", "")
        return marks[place in self._chosen]

    def press(self, key: str) -> bool:
        """Choose an answer by its key, or the marked one with Enter."""
        if self._list is not None and key != "escape":
            return self._list.press(key)
        if key == "escape":
            if self._own:
                self._own = False
            else:
                self._settle(self.request, None)
        elif self.edits:
            return False
        elif key in _STEPS:
            self._at = (self._at + _STEPS[key]) % len(self._listed().answers)
        elif key == "enter":
            self._enter()
        elif key == "o" and self._question.custom:
            self._own = True
        elif key == " " and self._question.multiple:
            self._number(self._at)
        elif key.isdecimal() and int(key) > 0:
            self._number(int(key) - 1)
        else:
            return False
        return True

    def _enter(self) -> None:
        """Give the marked answer; of several those that are chosen, if there are any."""
        options = self._question.options
        marked = self._listed().marked.key
        if self._chosen and (self._at < len(options) or marked == "enter"):
            self._take(tuple(options[place].label for place in sorted(self._chosen)))
        elif self._at < len(options):
            self._take((options[self._at].label,))
        elif marked != "enter":
            self.press(marked)

    def _number(self, place: int) -> None:
        if place >= len(self._question.options):
            return
        if self._question.multiple:
            self._chosen ^= {place}
        else:
            self._take((self._question.options[place].label,))

    def _take(self, answer: tuple[str, ...]) -> None:
        self._answers.append(answer)
        if len(self._answers) < len(self.request.questions):
            self._begin()
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
