"""The dialog for a permission request."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice

import msgspec
from rich.cells import cell_len

from pegboard.display import Span
from pegboard.schema.session import PermissionRequest, Reply, Scope
from pegboard.unstable import counted, exposed, one_line, shown_line, user_words
from pegboard_plugins.chat.answerlist import STEPS, AnswerList, ListedAnswer
from pegboard_plugins.chat.modes import SpanLine
from pegboard_plugins.shared.terminal import CONFIRM, permission_lines, row_sign, wrapped

MOST_ROWS = 5_000
"""The maximum number of rows to scroll through; the page has all rows."""
SHOWN_LETTERS = 4_000
"""The maximum length of a reason or a pattern, of which few rows are displayed."""
BODY_ROWS = 6
"""The number of rows of the request that take precedence over a row for each answer."""
REASON_ROWS = 2
ALWAYS_LETTERS = 120
"""The maximum length of the patterns in an answer; the page has all of them."""
LEAST_LETTERS, TITLE_LETTERS = 8, 60
"""The minimum and maximum length of the request in the title."""
V = " · v shows all"
_ALWAYS_ONCE = "asked every time"
_INSTEAD = "Tell the agent what to do instead · Enter sends it · Esc goes back"
_NARROWER = "Always allow in this project, one pattern per line · Enter saves · Esc goes back"
_LASTING = {"2": "s", "s": "s", "3": "a", "a": "a"}
"""The keys of the answers that last, and the letters of these answers."""
_SCOPES: dict[str, Scope] = {"s": "session", "a": "project"}
_VERY_TEXT = "`a` allows exactly this: there is no pattern to change"


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a permission request."""

    reply: Reply
    message: str | None = None
    scope: Scope = "project"
    patterns: tuple[str, ...] = ()


def allowed(request: PermissionRequest, settled: Settled) -> str:
    """Return a line for the conversation about what a lasting approval allows."""
    what = ", ".join(settled.patterns or request.always or request.patterns)
    asked = one_line(exposed(f"{request.permission} {what}"[:SHOWN_LETTERS]), SHOWN_LETTERS)
    return f"allowed from now on in this {settled.scope}: {asked}"


class Permission:
    """A dialog for a permission request: its details, its reason, and the answers."""

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
        self._has_scrolled = False
        self._page = 1
        self._written = ""
        self._once = bool(request.metadata.get("once"))
        self._answers = AnswerList(self._listed())
        self.refusal = ""
        self.unconfirmed = ""  # the letter whose answer is marked and lasts: Enter gives it
        self.begun = ""  # what the editor is given to begin with

    @property
    def edits(self) -> bool:
        """Whether the user types an instruction or a narrower pattern."""
        return bool(self._written)

    @property
    def _can_narrow(self) -> bool:
        """Whether the user can type narrower patterns than the request's `always` patterns."""
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
        """Return the title, as much of the request as fits, its reason, and the answers.

        In a low window the reason is left out first. Then the details are cut and can be scrolled.
        The answers are cut last.
        """
        body = self._body(max(10, width - 2))
        beside = 1 + min(len(body), BODY_ROWS)
        answers = self._asking(width, room, max(1, room - beside))
        rest = max(0, room - len(answers))
        why = self._reason(width)[: max(0, rest - beside)]
        space = max(0, rest - 1 - len(why))
        self._page = max(1, space - 1)
        if not self._has_scrolled:
            self._scroll = _first_row(body, space)
        self._scroll = max(0, min(self._scroll, len(body) - space))
        shown = [(Span("  "), *row) for row in body[self._scroll : self._scroll + space]]
        return [*[self._title(len(shown), len(body), width)][:rest], *shown, *why, *answers]

    def _asking(self, width: int, room: int, wanted: int) -> Sequence[SpanLine]:
        """Return the rows with the answers: about `wanted` rows, and at most `room` rows."""
        refusal = exposed(one_line(self.refusal, 4 * width))
        why = [*wrapped((Span(refusal, "warning"),), width, at_words=True)] if refusal else []
        if self._written:
            return [*wrapped((Span(self._written, "bold"),), width, at_words=True), *why][-room:]
        least = self._answers.least(width) + len(why)
        rows = self._answers.rows(width, max(min(least, room), wanted) - len(why))
        return [*rows, *why][:room]

    @lru_cache(maxsize=1)  # noqa: B019 - the dialog is short-lived
    def _body(self, width: int) -> Sequence[SpanLine]:
        """Return the rows of the request; they are cached, since each frame shows some of them."""
        lines = permission_lines(self.request, most=MOST_ROWS + 1)
        every = (row for line in lines for row in wrapped(line, width))
        rows = list(islice(every, MOST_ROWS + 1))
        if len(rows) > MOST_ROWS:
            rows[-1] = (Span("… too long to scroll: v shows everything", "warning"),)
        return rows

    def _reason(self, width: int) -> Sequence[SpanLine]:
        reason = self.request.metadata.get("reason")
        reasons = [user_words(reason[:SHOWN_LETTERS])] if isinstance(reason, str) else []
        why = " · ".join([*reasons, _ALWAYS_ONCE] if self._once else reasons)
        rows = wrapped((Span(exposed(why), "dim"),), width, at_words=True)
        return list(islice(rows, REASON_ROWS)) if why else ()

    def _title(self, shown: int, every: int, width: int) -> SpanLine:
        """Return the title with as many facts as fit; the hint to press `v` always fits."""
        agent = self.request.metadata.get("agent")
        who = f" · agent {agent}" if agent else ""
        rows = f"{self._scroll + 1}-{self._scroll + shown} of {every:,}"
        pages = f" · rows {rows} · PgUp PgDn" if shown else f" · {counted(every, 'row')}"
        notes = [who, ""]
        if shown < every:
            notes = [f"{pages}{V}{who}", f"{pages}{V}", *([f" · {rows}{V}"] if shown else []), V]
        what = self.request.permission
        if not shown or self._scroll:
            first = self.request.line or next(iter(self.request.patterns), "")
            what = f"{what} {first[:SHOWN_LETTERS]}".strip()
        room = min(TITLE_LETTERS, width - cell_len(f"Allow ?{self.place}{notes[-1]}"))
        title = f"Allow {one_line(exposed(what), max(LEAST_LETTERS, room))}?{self.place}"
        fitting = (note for note in notes if cell_len(title + note) <= width)
        return shown_line((Span(title, "warning"), Span(next(fitting, notes[-1]), "dim")))

    def whole_text(self) -> Sequence[SpanLine]:
        """Return the whole request for a page in the pager."""
        always = ", ".join(self.request.always) or "exactly this"
        answer = () if self._once else (Span(exposed(f"`a` allows in this project: {always}")),)
        return [*permission_lines(self.request), (Span(""),), answer]

    def press(self, key: str) -> bool:
        """Answer, mark another answer, or scroll; return False for a key that is not used."""
        if key == "s-tab":
            return False
        if self._written:
            if key == "escape":
                self._written = self.refusal = ""
                return True
            return False
        self.take_back(keeps_mark=True)
        if key in STEPS:
            self._answers.move(STEPS[key])
        elif key in ("pageup", "pagedown"):
            self._has_scrolled = True
            self._scroll += self._page if key == "pagedown" else -self._page
        elif key in _LASTING and not self._once:
            self.unconfirmed, self.refusal = key, CONFIRM[_SCOPES[_LASTING[key]]]
            self._answers.mark(_LASTING[key])
        else:
            return self._choose(self._answers.marked.key if key == "enter" else key)
        return True

    def take_back(self, *, keeps_mark: bool = False) -> str:
        """Cancel a lasting approval that still needs Enter; return its letter, or "" without one.

        The answer `y` is marked again, unless `keeps_mark`.
        """
        letter, self.unconfirmed = self.unconfirmed, ""
        if letter:
            self.refusal = ""
            if not keeps_mark:
                self._answers.mark("y")
        return letter

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
        if key in _SCOPES:
            return Settled(reply="always", scope=_SCOPES[key])
        if key in ("4", "n"):
            return Settled(reply="reject")
        return None

    def submit(self, text: str) -> None:
        """Deny with the typed instruction, or allow the typed patterns."""
        if self._written == _NARROWER:
            patterns = tuple(filter(str.strip, text.split("\n")))
            if patterns:
                self._settle(self.request, Settled(reply="always", patterns=patterns))
            return
        self._settle(self.request, Settled(reply="reject", message=text.strip() or None))

    def changed(self, text: str) -> None:
        """Do nothing, because only a submitted text counts."""

    def close(self) -> None:
        """Do nothing, because the request was answered elsewhere."""


def _first_row(body: Sequence[SpanLine], space: int) -> int:
    """Return the index of the first changed row if `space` rows do not reach it, or else 0."""
    changed = next((n for n, row in enumerate(body) if row_sign(row)[1]), 0)
    return changed if changed >= space else 0
