"""Text of others, in whatever field, moves no cursor, leaves no block, and holds nobody up."""

import asyncio
import json
import re
from collections.abc import Mapping

import pytest

from plugins.chat.conftest import Way
from plugins.chat.screen import FORBIDDEN, scripts
from plugins.chat.terminals import RULE, AnyTerminal
from plugins.chat.test_additions import install
from plugins.cli.commands import CommandLine

ESCAPES = "\x1b]52;c;aGk=\x07\x1b]0;title\x07\x9b2J\x9d0;t\x9c\x1b[2J\x1b[1;1H\x1b[?1049h\x1bc"
HOSTILE = f"{ESCAPES}\u202ertl\u2066\r over 👨\u200d👩\u200d👧 漢字\u2028\x08\x08"
SENT_ON = re.compile(
    rb"\x1b\]52|\x1b\]0;|\x1bc|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae\xa8]|\xe2\x81[\xa6-\xa9]"
)
"""What a terminal would obey: OSC 52, a title, a reset, C1, and what turns writing round."""
ASKED = {"question": ("Which?", "2"), "permission": ("Yes, once", "y")}
LONG = 10_000_000
AT_ONCE_S = 4.0
"""A key is seen so soon on a machine that does much else; a loop that is held takes far longer."""
STATUS = """
from pegboard import hookimpl
from pegboard.display import Span
from pegboard_plugins.chat import FooterWidget, SlashCommand, StatusItem

HOSTILE = TEXT


async def evil(context, _):
    context.say(HOSTILE)
    await context.choose(HOSTILE, [HOSTILE, "b"])
    raise ValueError(HOSTILE)


@hookimpl
def status_items(state):
    return (StatusItem(id="evil", text="evil " + HOSTILE, priority=99),)


@hookimpl
def footer_widget(state):
    return (FooterWidget(id="evil", lines=((Span("widget " + HOSTILE),),)),)


@hookimpl
def register_slash():
    return (SlashCommand(name="evil", help="help " + HOSTILE, action=evil),)
"""


def call(tool: str, **given: object) -> dict[str, object]:
    return {"tool": tool, "input": given}


def fields(pegboard: CommandLine) -> Mapping[str, object]:
    """A turn for each field that a model fills."""
    (pegboard.project / "evil.txt").write_text(f"one\n{HOSTILE}\n{'x' * 100_000}\n")
    name = f"{HOSTILE.replace('/', '')}.txt"
    asked = {
        "question": f"Which? {HOSTILE}",
        "header": HOSTILE,
        "options": [{"label": "Red", "description": HOSTILE}, {"label": f"Blue {HOSTILE}"}],
    }
    todo = {"content": f"task {HOSTILE}", "status": "pending", "priority": "high", "id": "1"}
    read = call("read", filePath="evil.txt")
    change = call("edit", filePath="evil.txt", oldString="one", newString=f"two {HOSTILE}")
    calls = {
        "output": [call("bash", command="cat evil.txt", description=HOSTILE)],
        "name": [call("write", filePath=name.replace("\r", ""), content=HOSTILE)],
        "diff": [read, change],
        "question": [call("question", questions=[asked])],
        "permission": [call("bash", command=f"true '{HOSTILE}'", description=HOSTILE)],
        "todo": [call("todowrite", todos=[todo])],
        "subagent": [call("task", description=HOSTILE, prompt="child", subagent_type="general")],
        "error": [call("read", filePath=f"missing {HOSTILE}")],
        "unknown": [call(f"tool {HOSTILE}")],
    }
    turns: dict[str, object] = {
        f"do {field}": [*({"calls": [each]} for each in steps), {"text": f"After {field}."}]
        for field, steps in calls.items()
    }
    fault = {"status": 400, "message": HOSTILE}
    return {
        **turns,
        "do text": {"text": f"Text {HOSTILE}\n\n- {HOSTILE}\n\n`{HOSTILE}`\n\nAfter text."},
        "do reasoning": {"reasoning": HOSTILE, "text": "After reasoning."},
        "do fault": [{"fault": fault}],
        "child": {"text": HOSTILE},
    }


async def sound(terminal: AnyTerminal) -> None:
    """The editor is where it belongs, and takes keys."""
    terminal.press("zz")
    await terminal.until(lambda: terminal.editor == "❯ zz")
    terminal.press("c-c")
    await terminal.until(lambda: terminal.editor == "❯")


@pytest.mark.timeout(120)
async def test_hostile_text_neither_moves_the_cursor_nor_leaves_its_block(
    pegboard: CommandLine, way: Way
) -> None:
    turns = fields(pegboard)
    rules = {"bash": {"true*": "ask"}}
    scripts(pegboard, HOSTILE_TITLE={"text": ""}, **turns, settings={"permission": rules})
    file = pegboard.home / "script.json"
    script = json.loads(file.read_text())
    script["scripts"][0]["steps"][0]["text"] = HOSTILE
    file.write_text(json.dumps(script))
    install(pegboard, STATUS.replace("TEXT", ascii(HOSTILE)))

    async with way.opened(*await way.arguments(), columns=100, rows=30, ready="evil ") as terminal:
        for prompt in (each for each in turns if each.startswith("do ")):
            field = prompt.removeprefix("do ")
            await terminal.say(prompt)
            if field in ASKED:
                shown, key = ASKED[field]
                await terminal.see_dialog(shown)
                terminal.press(key)
            await terminal.see("✗ " if field == "fault" else f"After {field}.")
            await sound(terminal)
        await terminal.say("/evil")
        await terminal.until(lambda: "  b" in terminal.shown)
        terminal.press("escape")
        await terminal.see("/evil raised ValueError")
        terminal.paste(HOSTILE)
        await terminal.until(lambda: "rtl" in terminal.editor)
        terminal.press("c-c")
        await terminal.until(lambda: terminal.editor == "❯")
        await terminal.say("/sessions")
        await terminal.see_now("type to filter")
        terminal.press("escape")
        await terminal.gone("type to filter")
        await sound(terminal)
        everything, raw = terminal.everything, terminal.raw

    assert (SENT_ON.findall(raw), FORBIDDEN.findall(raw)) == ([], [])
    assert sum(row.startswith(RULE) for row in everything.split("\n")) == 1
    before, _, after = everything.partition("❯ do text")
    rows = (before + after.partition("After text.")[2]).split("\n")
    assert [row for row in rows if row.startswith(("\\x", "rtl", "over"))] == []
    heads = re.findall(r"^(?:❯ do|After|[●✗] \w+)\b.{0,14}", everything, re.MULTILINE)
    asked = [head for head in heads if head.startswith("❯")]
    assert [head.removeprefix("❯ ") for head in asked] == [
        each for each in turns if each.startswith("do ")
    ]


async def echo_s(terminal: AnyTerminal) -> float:
    """How long a key takes to be seen."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    terminal.press("k")
    await terminal.until(lambda: terminal.editor == "❯ k")
    took_s = loop.time() - begun
    terminal.press("c-c")
    await terminal.until(lambda: terminal.editor == "❯")
    return took_s


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", ["tmux"], indirect=True)
async def test_a_line_of_ten_megabytes_holds_no_key_up(pegboard: CommandLine, way: Way) -> None:
    scripts(pegboard, huge={"text": "start " + "word " * (LONG // 5)}, chunk_chars=1_000_000)

    async with way.opened(*await way.arguments(), columns=100, rows=30) as terminal:
        await terminal.say("huge")
        await terminal.see("start word")
        took_s = [await echo_s(terminal) for _ in range(10)]
        terminal.press("escape")
        await terminal.until(lambda: terminal.editor == "❯")

    assert max(took_s) < AT_ONCE_S
