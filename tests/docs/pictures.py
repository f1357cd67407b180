"""The pictures of the chat: each is the screen of a real one that talks with a scripted model.

`poe pictures` makes all of docs/tutorial/pictures anew, `poe pictures diff-light todo` these.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyte

from docs.terminal_svg import DARK, LIGHT, Look, Screen, svg
from plugins.chat.screen import ChatTerminal, chat
from plugins.cli.commands import CommandLine
from support.models.model_server import (
    Answer,
    Body,
    ModelServer,
    Pause,
    Script,
    finish,
    say,
    step_of,
    tool_call,
    usage,
)
from support.models.model_server import text as words

FOLDER = Path(__file__).parents[2] / "docs" / "tutorial" / "pictures"
ROWS = 40
MODEL = "openai/gpt-4.1"
UNASKED = {"bash": "allow", "edit": "allow"}
"""Rules with which the mode `ask` has no question, for scenes that are about something else."""
ENVIRONMENT = {"COLORTERM": "truecolor", "PEGBOARD_DISABLE_PLUGINS": ""}
SETTLED_S = 1.2
"""After the last piece of an answer: the rest is drawn."""
CART = '''"""What somebody is about to buy."""


def total(prices, discount=0):
    """The sum of the prices, less the discount."""
    total = sum(prices)
    return total - discount


def count(prices):
    """How many things there are."""
    return len(prices)
'''
TESTS = """import unittest

from shop.cart import total


class Totals(unittest.TestCase):
    def test_a_discount_never_makes_the_total_negative(self):
        self.assertEqual(total([3], discount=5), 0)
"""
RUN_TESTS = "python3 -m unittest -q tests.test_cart 2>&1 | grep -E 'Error|OK'"
WHY = """\
The total is computed before anybody looks at the **discount**, so a large one makes it negative:

```python
total = sum(prices)
return total - discount  # 3 - 5 is -2
```

Two ways to mend it:

1. Cap the discount in `total()`, which all callers share.
2. Refuse such a discount where it is entered, in the form. That leaves the callers who"""
MENDED = "`total()` is never below zero now, and the test passes."


Call = tuple[str, dict[str, object]]
READ: Call = ("read", {"filePath": "shop/cart.py"})
EDIT: Call = (
    "edit",
    {
        "filePath": "shop/cart.py",
        "oldString": "    return total - discount\n",
        "newString": "    return max(total - discount, 0)\n",
    },
)
TEST: Call = ("bash", {"command": RUN_TESTS, "description": "Run the test of the cart"})
WAIT: Call = ("bash", {"command": "sleep 60", "description": "Run all tests"})
TODOS = {
    "Reproduce the failing test": "completed",
    "Cap the discount in total()": "completed",
    "Run all tests": "in_progress",
    "Say so in the changelog": "pending",
}
TODO: Call = (
    "todowrite",
    {
        "todos": [
            {"content": text, "status": status, "priority": "medium", "id": str(number)}
            for number, (text, status) in enumerate(TODOS.items())
        ]
    },
)


def task(title: str) -> Call:
    """A call of a subagent."""
    said: dict[str, object] = {
        "description": title,
        "prompt": f"{title}, please",
        "subagent_type": "explore",
    }
    return "task", said


def step(*calls: Call) -> Answer:
    """An answer of these calls."""
    pieces = [
        tool_call(name, given, call_id=f"call_{number}", index=number)
        for number, (name, given) in enumerate(calls)
    ]
    return [*pieces, *finish("tool_calls", usage=usage(6_140, 210))]


def said(text: str) -> Answer:
    """An answer of words."""
    return [*words(text), *finish(usage=usage(7_020, 40))]


def prompts(answers: Mapping[str, Sequence[Answer]]) -> Script:
    """What is said to the prompt in which a word stands, by the step of the turn."""

    def script(body: Body) -> Answer:
        if not body.get("tools"):
            return say("The failing test of the cart")
        asked = [each for each in body["messages"] if each["role"] == "user"][-1]
        steps = next(found for word, found in answers.items() if word in json.dumps(asked))
        return steps[min(step_of(body), len(steps) - 1)]

    return script


SECONDS = re.compile(r"(·\s)\d(\ss\s·)")
"""Of the line that says what goes on."""


class PicturedTerminal(ChatTerminal):
    """A terminal that says what its background is like, and keeps what is faint."""

    look = DARK

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows)
        self._screen = Screen(columns, rows, history=1000)
        self._stream = pyte.ByteStream(self._screen)
        self._answered = False

    def _read(self) -> None:
        super()._read()
        if not self._answered and b"\x1b]11;?" in self.raw:
            self._answered = True
            parts = [self.look.ground[place : place + 2] for place in (1, 3, 5)]
            os.write(self.ours, f"\x1b]11;rgb:{'/'.join(parts)}\x1b\\".encode())

    def picture(self, title: str) -> str:
        """The screen as it is, but for the seconds that a turn has run."""
        assert isinstance(self._screen, Screen)
        return SECONDS.sub(r"\g<1>3\g<2>", svg(self._screen, self.look, title))


class LightTerminal(PicturedTerminal):
    """The same with dark text on white."""

    look = LIGHT


Drive = Callable[[ChatTerminal], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What is on a picture: `title` says it to those who cannot see it."""

    title: str
    drive: Drive
    answers: Mapping[str, Sequence[Answer]] = field(default_factory=dict)
    columns: int = 90
    look: Look = DARK
    rules: Mapping[str, str] = field(default_factory=dict)
    has_model: bool = True


def asked(prompt: str, *seen: str) -> Drive:
    """Sends a prompt and waits until this is seen."""

    async def drive(terminal: ChatTerminal) -> None:
        await terminal.say(prompt)
        for text in seen:
            await terminal.see_now(text)

    return drive


async def _allow(terminal: ChatTerminal) -> None:
    """Let a change pass, and see that it was made."""
    await terminal.say("mend it")
    await terminal.see_dialog("Yes, once")
    terminal.press("y")
    await terminal.see_now("the test passes")


async def _pick(terminal: ChatTerminal) -> None:
    terminal.press("/model")
    await terminal.see_now("choose the model")
    terminal.press("enter")
    await terminal.see_now("type to filter")
    terminal.press("gpt-5")
    await terminal.see_now("❯ openai/gpt-5")


async def _begin(terminal: ChatTerminal) -> None:
    await terminal.see_now("a letter or Enter")


def _scenes() -> Iterator[tuple[str, Scene]]:
    asks = {"edit": "ask"}
    mending: Mapping[str, list[Answer]] = {
        "mend": [step(READ), step(EDIT), step(TEST), said(MENDED)]
    }
    why = "why does the test of the cart fail?"
    explained: Mapping[str, list[Answer]] = {"why": [step(READ, TEST), [*words(WHY), Pause()]]}
    reads = asked(why, "That leaves the callers who")
    tasks = [task("Find who calls total()"), task("Look how discounts are entered")]
    searching = [step(("grep", {"pattern": "total"})), [Pause()]]
    yield "first-run", Scene(title="The first run", drive=_begin, has_model=False)
    for name, look, columns in (
        ("streaming", DARK, 90),
        ("streaming-light", LIGHT, 90),
        ("wide", DARK, 160),
    ):
        title = "An answer that is being written"
        yield name, Scene(title=title, drive=reads, answers=explained, look=look, columns=columns)
    for name, look in (("diff", DARK), ("diff-light", LIGHT)):
        yield (
            name,
            Scene(title="A change", drive=_allow, answers=mending, look=look, rules=asks),
        )
    dialog = asked("mend it", "Yes, once")
    for name, columns in (("permission", 90), ("narrow", 40)):
        title = "A permission dialog"
        yield (
            name,
            Scene(title=title, drive=dialog, answers=mending, columns=columns, rules=asks),
        )
    works = asked("mend it", "▸ Run", "Running bash")
    yield "todo", Scene(title="Tasks", drive=works, answers={"mend": [step(TODO), step(WAIT)]})
    divides = asked("who needs it?", "Find who calls", "Look how")
    answers = {"please": searching, "who": [step(*tasks)]}
    yield "subagents", Scene(title="Subagents", drive=divides, answers=answers)
    yield "picker", Scene(title="Models to choose from", drive=_pick)


SCENES = dict(_scenes())


def _make_project(project: Path) -> None:
    for name, content in {"shop/cart.py": CART, "tests/test_cart.py": TESTS}.items():
        file = project / name
        file.parent.mkdir(parents=True)
        file.write_text(content)
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for line in (("init", "-qb", "main"), ("add", "."), (*who, "commit", "-qm", "The shop")):
        subprocess.run(["git", *line], cwd=project, check=True)


async def taken(scene: Scene, home: Path, is_awaited: Callable[[str], bool] | None = None) -> str:
    """Return the picture of a scene that is played in this folder.

    With `is_awaited`, that is the first picture for which it holds, or the last picture if it holds
    for none. Without it, it is the picture after a pause.
    """
    pegboard = CommandLine(home, home / "shop", {**ENVIRONMENT})
    await asyncio.to_thread(_make_project, pegboard.project)
    async with ModelServer(prompts(scene.answers)) as server:
        if scene.has_model:
            # A server with an address of its own has only the models that it lists.
            place = {"baseURL": server.url} if scene.answers else {}
            openai = {"options": {**place, "apiKey": "key"}}
            rules = {**UNASKED, **scene.rules}
            pegboard.configure(model=MODEL, provider={"openai": openai}, permission=rules)
        async with chat(
            pegboard,
            columns=scene.columns,
            rows=ROWS,
            ready="❯",
            terminal=PicturedTerminal if scene.look is DARK else LightTerminal,
        ) as terminal:
            await scene.drive(terminal)
            assert isinstance(terminal, PicturedTerminal)
            picture = partial(terminal.picture, scene.title)
            if is_awaited is None:
                await asyncio.sleep(SETTLED_S)
            else:
                with suppress(AssertionError):  # the caller compares, and shows the difference
                    await terminal.until(lambda: is_awaited(picture()))
            return picture()


async def main(names: list[str]) -> None:
    """Make the pictures that are named, or all."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or SCENES:
        with tempfile.TemporaryDirectory() as folder:
            content = await taken(SCENES[name], Path(folder))
        (FOLDER / f"{name}.svg").write_text(content)
        sys.stdout.write(f"{name}: {len(content):,} bytes\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
