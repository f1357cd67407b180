"""What a terminal sends beside keys is obeyed or left out, and is never a key."""

import asyncio

import pytest
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from pegboard.display import Block, Span
from pegboard.display.difflines import diff_rows
from pegboard.schema.part import Completed, CompletedSpan, ToolPart
from pegboard_plugins.chat.finished import Called, rows_of
from pegboard_plugins.chat.terminalinput import ASK_BACKGROUND, TerminalInput
from pegboard_plugins.shared.terminal import Pen, wrapped
from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine

WHITE, BLACK = "ffff/ffff/ffff", "0000/0000/0000"
UNKNOWN = ("\x1b[27;5;9~", "\x1b[99;133u", "\x1b[?62;c", "\x1b[12;40R", "\x1b]4;1;rgb:0/0/0\x07")
SLOW = {"tool": "bash", "input": {"command": "sleep 1; echo slept", "description": "sleep"}}
LIGHT_TOOL = "38;2;46;89;168"


class Fed:
    """The keys and the reports of a text that comes in pieces."""

    def __init__(self, *pieces: str) -> None:
        self.backgrounds: list[bool] = []
        self.keys: list[Keys | str] = []
        with open("/dev/null") as nothing:  # noqa: PTH123 - it is a stream that is wanted
            source = TerminalInput(nothing, self.backgrounds.append)
        source.release()
        for piece in pieces:
            source.vt100_parser.feed(piece)
        self.keys = [press.key for press in self._all(source)]

    @staticmethod
    def _all(source: TerminalInput) -> list[KeyPress]:
        return source.flush_keys()


@pytest.mark.parametrize("sequence", UNKNOWN)
def test_a_sequence_that_is_no_key_is_left_out_however_it_comes(sequence: str) -> None:
    for cut in range(2, len(sequence)):
        assert Fed("a", sequence[:cut], sequence[cut:] + "b").keys == ["a", "b"]


@pytest.mark.parametrize(
    ("pieces", "keys"),
    [
        (("\x1b[A",), [Keys.Up]),
        (("\x1b[", "A"), [Keys.Up]),
        (("\x1b",), [Keys.Escape]),
        (("\x1b[",), [Keys.Escape, "["]),
        (("\x1b[[A",), [Keys.F1]),
        (("\x1b[1;5C",), [Keys.ControlRight]),
        (("\x1b[200~a\x1b[31mb\x1b[201~c",), [Keys.BracketedPaste, "c"]),
    ],
)
def test_keys_come_as_they_are(pieces: tuple[str, ...], keys: list[str]) -> None:
    assert Fed(*pieces).keys == keys


@pytest.mark.parametrize(
    ("colour", "light"),
    [(WHITE, True), (BLACK, False), ("ff/ff/d7", True), ("1e1e/1e1e/2e2e", False)],
)
@pytest.mark.parametrize("end", ["\x07", "\x1b\\"])
def test_the_background_is_told(colour: str, end: str, light: bool) -> None:
    fed = Fed(f"a\x1b]11;rgb:{colour[:5]}", f"{colour[5:]}{end}b")

    assert (fed.keys, fed.backgrounds) == (["a", "b"], [light])


async def test_a_light_terminal_is_drawn_on_in_the_colours_for_it(pegboard: CommandLine) -> None:
    scripts(pegboard, begin=[{"text": "Begun.", "calls": [SLOW]}, {"text": "End."}])

    async with chat(pegboard, COLORTERM="truecolor") as terminal:
        assert terminal.raw.count(ASK_BACKGROUND.encode()) == 1
        terminal.press("begin", f"\x1b]11;rgb:{WHITE}\x07", *UNKNOWN)
        await asyncio.sleep(0.2)
        terminal.press("enter")
        await terminal.see("End.")

    assert "❯ begin\n" in terminal.everything
    assert "stopped" not in terminal.everything
    assert LIGHT_TOOL in terminal.raw.decode()


async def test_a_terminal_of_sixteen_colours_is_not_asked(pegboard: CommandLine) -> None:
    scripts(pegboard)

    async with chat(pegboard, TERM="xterm") as terminal:
        assert ASK_BACKGROUND.encode() not in terminal.raw


def test_a_theme_of_many_colours_is_drawn_with_256_where_there_are_no_more() -> None:
    line = (Span("x", "tool"),)

    assert Pen({"tool": "#2e59a9"}, colours="many").text(line).startswith("\x1b[38;5;")
    assert Pen({"tool": "#2e59a8"}, colours="full").text(line).startswith(f"\x1b[{LIGHT_TOOL}m")


def test_a_live_text_is_wrapped_at_its_words() -> None:
    line = (Span("one three fortyfive-and-more x y"),)

    rows = ["".join(span.text for span in row) for row in wrapped(line, 10, at_words=True)]

    assert rows == ["one three ", "fortyfive-", "and-more x", "y"]


def test_an_indented_word_that_is_too_long_stays_on_the_row_of_its_blanks() -> None:
    line = (Span("    " + "x" * 10),)

    rows = ["".join(span.text for span in row) for row in wrapped(line, 10, at_words=True)]

    assert rows == ["    xxxxxx", "xxxx"]


def test_a_question_and_what_a_tool_has_said_are_wrapped_at_words() -> None:
    words = "Which implementation of the authentication middleware should be configured?"
    blocks = (
        Block(lines=((Span(words), Span("  Server-side sessions", "done")),)),
        Block(lines=((Span(words),),), fold=9),
    )
    time = CompletedSpan(start=0, end=0)
    state = Completed(input={}, output="", title="", metadata={}, time=time)
    part = ToolPart(
        id="p", session_id="s", message_id="m", call_id="c", tool="question", state=state
    )

    for block in blocks:
        _, _, *rows = rows_of(Called(part=part), Pen(colours="none"), 40, block)
        shown = [row.removeprefix("  │ ") for row in rows]
        assert " ".join(" ".join(shown).split()).startswith(words), shown
        assert max(map(len, rows)) <= 40


def test_what_is_left_of_a_line_of_a_diff_stands_below_its_text() -> None:
    diff = "--- a\n+++ a\n@@ -9,1 +9,2 @@\n x\n+" + "word " * 5 + "\n"

    rows = Pen(colours="none").lines(diff_rows(diff), 20)

    assert rows == [" 9   x", "10 + word word word", "     word word"]


async def test_a_program_that_has_the_terminal_meanwhile_writes_lines_as_on_any_terminal(
    pegboard: CommandLine,
) -> None:
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("/doctor")
        await terminal.left()
        await terminal.back()
        await terminal.see("loaded, no problems")
        rows = terminal.everything.splitlines()

    assert [row.split()[1] for row in rows if row.startswith(("ok ", "warns "))][:2] == [
        "install",
        "git",
    ]


@pytest.mark.parametrize("sequence", ["\x1b[13;2u", "\x1b[27;2;13~"])
async def test_shift_and_enter_make_a_new_line(pegboard: CommandLine, sequence: str) -> None:
    scripts(pegboard)

    async with chat(pegboard) as terminal:
        terminal.press("first", sequence, "second")
        await terminal.until(lambda: "❯ first" in terminal.shown and "  second" in terminal.shown)
        terminal.press("enter")
        await terminal.see("You said: first")
