"""The dialog for questions of the model or of a plugin."""

from collections.abc import Callable, Sequence
from itertools import islice

from pegboard.display import Span
from pegboard.schema.session import Question, QuestionRequest
from pegboard.unstable import shown_line
from pegboard_plugins.chat.answerlist import STEPS, AnswerList, ListedAnswer
from pegboard_plugins.chat.modes import Choice, Item, SpanLine
from pegboard_plugins.shared.terminal import wrapped

DIGITS = 9
HEAD_ROWS = 3
"""The maximum number of rows of a question."""


class QuestionDialog:
    """A dialog for the questions of the model or of a plugin, one question at a time.

    If `is_own`, a command of the user asks the question, so keys go to the dialog at once.
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
        """Whether the dialog opened by itself, and not by the user's command."""
        return not self._is_own

    @property
    def _question(self) -> Question:
        return self.request.questions[len(self._answers)]

    def _begin(self) -> None:
        """Show the next question with its answers as rows, or as a list with a filter.

        A list is used for more than nine answers, and for a question that the user's command asks.
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
        """Whether the user types an answer or filters a list."""
        return self._own or self._list is not None or not self._question.options

    def lines(self, width: int, room: int) -> Sequence[SpanLine]:
        """Return the lines of the question and its answers; the question is cut first."""
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
        """Choose an answer by its key, or the marked answer with Enter."""
        if self._list is not None and key != "escape":
            return self._list.press(key)
        if key == "escape":
            if self._own:
                self._own = False
            else:
                self._settle(self.request, None)
        elif self.edits:
            return False
        elif key in STEPS:
            self._at = (self._at + STEPS[key]) % len(self._listed().answers)
        elif key == "enter":
            self._enter()
        elif key == "o" and self._question.custom:
            self._own = True
        elif key == " " and self._question.multiple:
            self._number(self._at)
        elif (place := self._place_of(key)) >= 0:
            self._number(place)
        else:
            return False
        return True

    def _place_of(self, key: str) -> int:
        """Return the index of the answer with this key, or -1 if no answer has the key.

        `y` and `n` choose Yes and No, as in the dialog for a permission request.
        """
        if key.isdecimal():
            return int(key) - 1
        labels = [each.label.lower() for each in self._question.options]
        is_plain = sorted(labels) == ["no", "yes"] and not self._question.multiple
        return next((n for n, label in enumerate(labels) if is_plain and label[0] == key), -1)

    def _enter(self) -> None:
        """Answer with the marked option, or with all chosen options of a multiple choice."""
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
        """Answer with the typed text, or with the option that is selected in a long list."""
        if self._list is not None:
            self._list.submit(text)
            chosen = self._list.answer.result() if self._list.answer.done() else None
            own = text.strip() if self._question.custom else ""
            if chosen or own:
                self._take((chosen or own,))
        elif text.strip():
            self._take((text.strip(),))

    def changed(self, text: str) -> None:
        """Filter the list by the text; do nothing without a list."""
        if self._list is not None:
            self._list.changed(text)

    def close(self) -> None:
        """Do nothing, because the questions were answered elsewhere."""
