"""A dialog is a list of answers, which a window of any size shows."""

import itertools

import pytest

from pegboard.display import SpanLine
from pegboard.schema.session import (
    PermissionRequest,
    Question,
    QuestionOption,
    QuestionRequest,
    Reply,
    Scope,
)
from pegboard_plugins.chat.questions import QuestionDialog
from pegboard_plugins.chat.requests import Permission, Settled, allowed
from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import WAITING
from plugins.chat.test_session import EDIT, READ, calc
from plugins.cli.commands import CommandLine

LINES = 200
CHANGED = "--- a\n+++ b\n" + f"@@ -1,{LINES} +1,{LINES} @@\n" + "-one\n+two\n" * LINES
EDITING = PermissionRequest(
    id="per_1",
    session_id="ses_1",
    permission="edit",
    patterns=("calc.py",),
    metadata={"diff": CHANGED, "reason": "a rule asks", "agent": "build"},
    always=("*",),
)
RUNNING = PermissionRequest(
    id="per_2",
    session_id="ses_1",
    permission="bash",
    patterns=("git push origin main",),
    metadata={},
    always=("git push *",),
)
COLOURS = Question(
    question="Which?",
    header="Colour",
    options=(QuestionOption(label="Red", description="a rose"), QuestionOption(label="Blue")),
)
ASKED = QuestionRequest(id="que_1", session_id="ses_1", questions=(COLOURS,))


class Given:
    """The answers that dialogs have given."""

    def __init__(self) -> None:
        self.settled: list[Settled | None] = []
        self.answers: list[object] = []

    def settle(self, _: PermissionRequest, settled: Settled | None) -> None:
        self.settled.append(settled)

    def answer(self, _: QuestionRequest, answers: object) -> None:
        self.answers.append(answers)


def plain(row: SpanLine) -> str:
    return "".join(span.text for span in row)


def text(dialog: Permission | QuestionDialog, width: int, room: int) -> str:
    return "\n".join(map(plain, dialog.lines(width, room)))


def test_each_answer_has_a_row_in_plain_words() -> None:
    shown = text(Permission(RUNNING, Given().settle), 80, 20).split("\n")

    assert shown == [
        "Allow bash?",
        "  git push origin main",
        "❯ y    Yes, once",
        "  s    Yes, in this session: git push *",
        "  a    Yes, always in this project: git push *",
        "  e    Yes, always in this project, with a pattern that I write",
        "  n    No",
        "  w    No, and tell the agent what to do instead",
        "  esc  No, and stop",
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("room", range(3, 25))
def test_the_answers_are_the_last_to_go(width: int, room: int) -> None:
    asked, questions = Permission(EDITING, Given().settle), QuestionDialog(ASKED, Given().answer)

    shown = text(asked, width, room)
    choices = text(questions, width, room)

    assert [word for word in ("once", "session", "any edit", "stop") if word not in shown] == []
    assert [word for word in ("Red", "Blue", "own", "kip") if word not in choices] == []
    assert max(len(shown.split("\n")), len(choices.split("\n"))) <= room
    assert "Allow edit" in shown or room < 4


@pytest.mark.parametrize("room", [8, 12, 30, 60])
def test_what_is_asked_has_all_the_room_that_the_answers_leave(room: int) -> None:
    shown = text(Permission(EDITING, Given().settle), 80, room).split("\n")

    assert len(shown) == room


def test_the_rows_that_are_shown_are_counted_while_they_are_scrolled() -> None:
    dialog = Permission(EDITING, Given().settle)

    seen = []
    for _ in range(LINES):
        rows = text(dialog, 80, 20).split("\n")
        first, last = rows[0].partition("rows ")[2].partition(" of ")[0].split("-")
        assert len([row for row in rows if row.endswith(("one", "two", "calc.py"))]) == (
            int(last) - int(first) + 1
        )
        seen.append((int(first), int(last)))
        dialog.press("pagedown")

    assert seen[0][0] == 1
    assert seen[-1][1] == 2 * LINES + 1
    assert all(begin <= end + 1 for (_, end), (begin, _) in itertools.pairwise(seen))


@pytest.mark.parametrize(
    ("steps", "reply"),
    [(0, "once"), (1, "session"), (2, "project"), (4, "reject"), (-1, None), (-3, "reject")],
)
def test_enter_gives_the_marked_answer(steps: int, reply: Reply | str | None) -> None:
    given = Given()
    dialog = Permission(RUNNING, given.settle)

    for _ in range(abs(steps)):
        dialog.press("down" if steps > 0 else "up")
    dialog.press("enter")

    expected = {
        "once": Settled(reply="once"),
        "session": Settled(reply="always", scope="session"),
        "project": Settled(reply="always", scope="project"),
        "reject": Settled(reply="reject"),
    }
    assert given.settled == [expected[reply] if reply else None]


def test_enter_gives_the_marked_answer_of_a_question() -> None:
    given = Given()
    dialog = QuestionDialog(ASKED, given.answer)

    dialog.press("down")
    assert "❯ 2    Blue" in text(dialog, 80, 20)
    dialog.press("enter")

    assert given.answers == [[("Blue",)]]


@pytest.mark.parametrize(("key", "answer"), [("y", "Yes"), ("n", "No")])
def test_a_letter_answers_a_question_of_yes_and_no(key: str, answer: str) -> None:
    given = Given()
    options = (QuestionOption(label="Yes"), QuestionOption(label="No"))
    plain = Question(**{**_fields(COLOURS), "options": options})
    asked = QuestionRequest(id="que_1", session_id="ses_1", questions=(plain,))

    assert QuestionDialog(asked, given.answer).press(key)
    assert not QuestionDialog(ASKED, given.answer).press(key)

    assert given.answers == [[(answer,)]]


def test_several_answers_are_marked_and_sent() -> None:
    given = Given()
    several = QuestionRequest(
        id="que_1",
        session_id="ses_1",
        questions=(Question(**{**_fields(COLOURS), "multiple": True}),),
    )
    dialog = QuestionDialog(several, given.answer)

    for key in (" ", "down", " ", "1", "enter"):
        dialog.press(key)

    assert given.answers == [[("Blue",)]]


def _fields(question: Question) -> dict[str, object]:
    return {name: getattr(question, name) for name in question.__struct_fields__}


@pytest.mark.parametrize("rows", [5, 8, 10, 12, 24, 50])
async def test_a_window_of_any_height_shows_the_answers(pegboard: CommandLine, rows: int) -> None:
    calc(pegboard)
    steps = [{"calls": [READ]}, {"calls": [EDIT]}, {"text": "Mended."}]
    scripts(pegboard, fix=steps, settings={"permission": {"edit": "ask"}})

    async with chat(pegboard, rows=rows) as terminal:
        terminal.press("fix", "enter")
        await terminal.until(lambda: "esc" in "\n".join(terminal.shown))
        await terminal.until(lambda: WAITING not in "\n".join(terminal.shown))
        shown = "\n".join(terminal.shown)
        assert [word for word in ("once", "session", "any edit", "stop") if word not in shown] == []
        assert "❯ y" in shown
        terminal.press("enter")
        await terminal.see("Mended.")


async def test_enter_answers_only_after_the_pause(pegboard: CommandLine) -> None:
    file = calc(pegboard)
    before = file.read_text()
    steps = [{"calls": [READ]}, {"calls": [EDIT]}, {"text": "Mended."}]
    scripts(pegboard, fix=steps, settings={"permission": {"edit": "ask"}})

    async with chat(pegboard) as terminal:
        terminal.press("fix", "enter", "and then")
        await terminal.see_now(WAITING)
        terminal.press("up", "down", "enter")
        await terminal.see_now("and then")
        await terminal.until(lambda: terminal.editor == "❯")
        assert file.read_text() == before
        await terminal.see_dialog("Yes, once")
        terminal.press("enter")
        await terminal.see("● edit calc.py +1 -1")

    assert file.read_text() != before


@pytest.mark.parametrize(
    ("key", "scope"), [("2", "session"), ("s", "session"), ("3", "project"), ("a", "project")]
)
def test_an_answer_that_lasts_counts_with_enter(key: str, scope: Scope) -> None:
    given = Given()
    dialog = Permission(RUNNING, given.settle)

    assert dialog.press(key)
    assert given.settled == []
    assert dialog.press("enter")
    assert given.settled == [Settled(reply="always", scope=scope)]


async def test_the_transcript_says_what_is_allowed_from_now_on(
    pegboard: CommandLine, place: Place
) -> None:
    calc(pegboard)
    steps = [{"calls": [READ]}, {"calls": [EDIT]}, {"text": "Mended."}]
    scripts(pegboard, fix=steps, settings={"permission": {"edit": "ask"}})

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("fix")
        await terminal.see_dialog("Yes, once")
        terminal.press("s", "enter")
        await terminal.see("· allowed from now on in this session: edit *")
        await terminal.see("Mended.")


def test_what_is_allowed_from_now_on_is_the_pattern_that_was_written() -> None:
    narrow = Settled(reply="always", patterns=("git push origin *",))

    said = allowed(RUNNING, narrow)

    assert said == "allowed from now on in this project: bash git push origin *"


def test_an_answer_with_a_long_pattern_stays_one_of_the_rows() -> None:
    long = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="bash",
        patterns=("x" * 500,),
        metadata={},
        always=("x" * 500,),
    )

    rows = Permission(long, Given().settle).lines(60, 30)

    assert [plain(row) for row in rows if "stop" in plain(row)] == ["  esc  No, and stop"]
    assert all(len(plain(row)) <= 60 for row in rows)
