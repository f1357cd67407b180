"""What the user types while a dialog appears: it goes to the editor and answers nothing."""

import asyncio
import time
from random import Random

import pytest

from pegboard_plugins.shared.terminal import HELD_S
from plugins.chat.conftest import Place
from plugins.chat.screen import chat, scripts
from plugins.chat.terminals import WAITING, AnyTerminal
from plugins.cli.commands import CommandLine

WORDS = "also say yes and update all docs please now do it as you want 1 2 3 4 5".split()  # noqa: SIM905
FILE = "approved.txt"
ASKING = {"tool": "bash", "input": {"command": f"touch {FILE}", "description": "touch"}}
SHOWN = f"touch {FILE}"
ANSWERS = "Yes, once"
CONFIRM = {"session": "Enter allows it", "project": "Enter allows it always"}


def prepare(pegboard: CommandLine, *, delay_s: float = 0) -> None:
    steps = [{"calls": [ASKING], "delay_s": delay_s}, {"text": "Went on."}]
    scripts(pegboard, ask=steps, settings={"permission": {"bash": "ask"}})


async def test_keys_go_to_the_editor_while_a_draft_stands_there(
    pegboard: CommandLine, place: Place
) -> None:
    prepare(pegboard)

    async with chat(pegboard, *await place.arguments()) as terminal:
        terminal.press("ask", "enter", "yes a")
        await terminal.see_now(SHOWN)
        await terminal.see_now(WAITING)
        terminal.press("y", "s", "1")
        await terminal.until(lambda: terminal.editor == "❯ yes ays1")
        terminal.press("c-x")
        await terminal.see_dialog(SHOWN)
        assert terminal.editor == "❯ yes ays1"
        assert not (pegboard.project / FILE).exists()
        terminal.press("y")
        await terminal.see("Went on.")
        assert terminal.editor == "❯ yes ays1"

    assert (pegboard.project / FILE).exists()


async def test_a_letter_that_is_no_answer_goes_to_the_editor_with_all_that_follow(
    pegboard: CommandLine, place: Place
) -> None:
    prepare(pegboard)

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("ask")
        await terminal.see_dialog(ANSWERS)
        terminal.press("/todo yes", "c-w", "c-w")
        await terminal.see_now(WAITING)
        terminal.press("/todo")
        await terminal.until(lambda: terminal.editor == "❯ /todo")
        terminal.press("enter")
        await terminal.see("the task list is empty")
        assert not (pegboard.project / FILE).exists()
        await terminal.see_dialog(ANSWERS)
        terminal.press("y")
        await terminal.see("Went on.")

    assert (pegboard.project / FILE).exists()


async def test_a_sentence_at_a_question_goes_to_the_editor(pegboard: CommandLine) -> None:
    asked = {"question": "Which?", "header": "Q", "options": [{"label": "Red"}]}
    call = {"tool": "question", "input": {"questions": [asked]}}
    scripts(pegboard, which=[{"calls": [call]}, {"text": "Chosen."}])

    async with chat(pegboard) as terminal:
        await terminal.say("which")
        await terminal.see_dialog("Type your own answer")
        terminal.press("wait, a sentence")
        await terminal.until(lambda: terminal.editor == "❯ wait, a sentence")
        assert "Chosen." not in terminal.everything


async def test_a_blank_leaves_the_keys_with_the_dialog(pegboard: CommandLine) -> None:
    prepare(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("ask")
        await terminal.see_dialog(ANSWERS)
        terminal.press(" ", "n")
        await terminal.see("You said no")

    assert not (pegboard.project / FILE).exists()


async def test_the_first_screen_gives_a_sentence_to_the_editor(pegboard: CommandLine) -> None:
    async with chat(pegboard, ready="Get started") as terminal:
        await terminal.see_dialog("a letter or Enter")
        assert WAITING.encode() not in terminal.raw  # nothing is typed that it could wait for
        terminal.press("explain")
        await terminal.until(lambda: terminal.editor == "❯ explain")
        await terminal.see_now(WAITING)


async def test_the_first_screen_takes_no_key_that_was_meant_for_the_editor(
    pegboard: CommandLine,
) -> None:
    async with chat(pegboard, ready="Get started") as terminal:
        terminal.press("login")
        await terminal.until(lambda: terminal.editor == "❯ login")
        terminal.press("c-u")
        await terminal.see_dialog("a letter or Enter")
        terminal.press("n")
        await terminal.gone("a letter or Enter")


async def test_a_dialog_over_a_list_waits_for_the_search_to_end(pegboard: CommandLine) -> None:
    prepare(pegboard, delay_s=0.5)

    async with chat(pegboard) as terminal:
        terminal.press("ask", "enter")
        await terminal.until(lambda: terminal.editor == "❯")
        terminal.press("/keys", "escape", "c-u", "/model", "enter")
        await terminal.see_now("type to filter")
        terminal.press("y")
        await terminal.see_now(WAITING)
        terminal.press("y")
        await terminal.until(lambda: terminal.editor == "❯ yy")
        terminal.press("escape")
        await terminal.see_dialog(SHOWN)
        terminal.press("n")
        await terminal.see("You said no")

    assert not (pegboard.project / FILE).exists()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.long)])
async def test_sentences_of_any_pace_approve_nothing(
    pegboard: CommandLine, place: Place, rounds: int
) -> None:
    random = Random(rounds)
    prepare(pegboard, delay_s=0.3)

    async with chat(pegboard, *await place.arguments()) as terminal:
        for _ in range(rounds):
            terminal.write(b"ask\rI ")  # the next sentence begins before any dialog can come
            await asyncio.sleep(random.random() / 2)
            for _ in range(9):
                await _typed(terminal, random)
            await _typed_slowly(terminal, random.choice(("yes do", "say a", "as it")), random)
            await terminal.see_now(ANSWERS)
            assert not (pegboard.project / FILE).exists()
            terminal.press("c-c")
            await terminal.see_dialog(ANSWERS)
            terminal.press("escape")
            await terminal.gone(ANSWERS)

    listed = await pegboard("permission", "list")
    assert not (pegboard.project / FILE).exists()
    assert "bash" not in listed.out


async def test_a_prompt_that_follows_a_stop_is_answered(
    pegboard: CommandLine, place: Place
) -> None:
    prepare(pegboard)

    async with chat(pegboard, *await place.arguments()) as terminal:
        for _ in range(5):
            await terminal.say("ask")
            await terminal.see_dialog(ANSWERS)
            terminal.write(b"\x1b")
            await terminal.gone(ANSWERS)
        await terminal.say("hello")
        await terminal.see("You said: hello")


async def _typed(terminal: AnyTerminal, random: Random) -> None:
    """Type a sentence, a key at a time, at a pace of its own."""
    pace_s = random.choice((0.0, 0.005, 0.02, 0.05))
    for letter in " ".join(random.choices(WORDS, k=6)) + " ":
        terminal.press(letter)
        await asyncio.sleep(pace_s * random.random() * 2)


async def _typed_slowly(terminal: AnyTerminal, sentence: str, random: Random) -> None:
    """Type it so slowly that each letter comes alone."""
    for letter in sentence:
        terminal.press(letter)
        await asyncio.sleep(HELD_S * (1 + random.random()))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.long)])
async def test_slow_sentences_over_a_dialog_at_rest_approve_nothing_that_lasts(
    pegboard: CommandLine, place: Place, rounds: int
) -> None:
    random = Random(rounds)
    prepare(pegboard)

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("ask")
        for _ in range(rounds):
            await terminal.see_dialog(ANSWERS)
            sentence = random.choice(("so do", "stop", "as I", "all of", "2 of", "3 of"))
            await _typed_slowly(terminal, sentence, random)
            await terminal.until(lambda: terminal.editor == f"❯ {sentence}")  # noqa: B023
            terminal.press("c-u")
        assert not (pegboard.project / FILE).exists()

    listed = await pegboard("permission", "list")
    assert "bash" not in listed.out


@pytest.mark.parametrize("sentence", ["yes but later", "actually no", "stop", "while you wait"])
async def test_a_sentence_over_a_dialog_that_has_the_keys_is_written_and_answers_nothing(
    pegboard: CommandLine, place: Place, sentence: str
) -> None:
    prepare(pegboard)

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("ask")
        await terminal.see_dialog(ANSWERS)
        terminal.press(sentence)
        await terminal.until(lambda: terminal.editor == f"❯ {sentence}")
        await terminal.see_now(WAITING)

    assert not (pegboard.project / FILE).exists()
    assert "allowed from now on" not in terminal.everything


@pytest.mark.timeout(400)
@pytest.mark.parametrize("rounds", [4, pytest.param(30, marks=pytest.mark.long)])
async def test_sentences_over_a_dialog_at_rest_approve_nothing(
    pegboard: CommandLine, place: Place, rounds: int
) -> None:
    random = Random(rounds)
    prepare(pegboard)

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("ask")
        for _ in range(rounds):
            await terminal.see_dialog(ANSWERS)
            begun = random.choice(("yes but", "actually,", "so", "stop", "no", "1 2", "easy", "as"))
            if not await _at_a_pace(terminal, f"{begun} not that", random):
                return  # this machine is too slow to type so fast: the sentence may have answered
            await terminal.until(lambda: terminal.editor == f"❯ {begun} not that")  # noqa: B023
            assert not (pegboard.project / FILE).exists()
            terminal.press("c-u")

        assert "allowed from now on" not in terminal.everything


@pytest.mark.parametrize(("letter", "scope"), [("s", "session"), ("a", "project")])
async def test_an_answer_that_lasts_is_given_by_its_letter_and_enter(
    pegboard: CommandLine, place: Place, letter: str, scope: str
) -> None:
    prepare(pegboard)

    async with chat(pegboard, *await place.arguments()) as terminal:
        await terminal.say("ask")
        await terminal.see_dialog(ANSWERS)
        terminal.press(letter)
        await terminal.see_now(f"{CONFIRM[scope]} in this {scope}")
        terminal.press("y")
        await terminal.until(lambda: terminal.editor == f"❯ {letter}y")
        await terminal.see_now(WAITING)
        terminal.press("c-u")
        await terminal.see_dialog(ANSWERS)
        assert not (pegboard.project / FILE).exists()
        terminal.press(letter, "enter")
        await terminal.see(f"· allowed from now on in this {scope}: bash ")
        await terminal.see("Went on.")

    assert (pegboard.project / FILE).exists()


async def test_a_letter_that_is_taken_back_at_once_answers_nothing(pegboard: CommandLine) -> None:
    prepare(pegboard)

    async with chat(pegboard) as terminal:
        await terminal.say("ask")
        await terminal.see_dialog(ANSWERS)
        terminal.press("y\x7f", "n")
        await terminal.see("You said no")

    assert not (pegboard.project / FILE).exists()


async def _at_a_pace(terminal: AnyTerminal, sentence: str, random: Random) -> bool:
    """Type it with up to 200 ms between letters; return whether the second letter came in time."""
    pace_s = random.choice((0.0, 0.05, 0.2))
    begun = time.monotonic()
    terminal.press(sentence[0])
    await asyncio.sleep(pace_s * random.random() / 2)
    terminal.press(sentence[1])
    is_fast = time.monotonic() - begun < 0.2
    for letter in sentence[2:]:
        await asyncio.sleep(pace_s * random.random())
        terminal.press(letter)
    return is_fast
