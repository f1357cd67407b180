"""A line of ten megabytes, in whatever field, is shown in part and holds no key up."""

import json
from collections.abc import Mapping

import pytest

from plugins.chat.conftest import Way
from plugins.chat.screen import FORBIDDEN, scripts
from plugins.chat.terminals import RULE
from plugins.chat.test_additions import install
from plugins.chat.test_hostile import HOSTILE, SENT_ON, echo_s
from plugins.cli.commands import CommandLine

LONG_BYTES = 10_000_000
GIVEN_BYTES = 7_000_000
"""In the arguments of calls: with more than 8 MB in an answer no call of it is made."""


def of_bytes(size: int) -> str:
    """A line of so many bytes as JSON."""
    piece = f"{HOSTILE} "
    return piece * (size // len(json.dumps(piece)))


HUGE, GIVEN = of_bytes(LONG_BYTES), of_bytes(GIVEN_BYTES)
AT_ONCE_S = 4.0
"""A key is seen so soon on a machine that does much else; a loop that is held takes far longer."""
WRITTEN = 400_000
"""Bytes for one such line at most: what is shown of it, in rows of whole words."""
ASKED = {"question": ("Which?", "2"), "permission": ("Yes, once", "y")}
STATUS = """
from pegboard import hookimpl
from pegboard.display import Span
from pegboard_plugins.chat import FooterWidget, StatusItem

HUGE = open(FILE).read()


@hookimpl
def status_items(state):
    return (StatusItem(id="huge", text="item " + HUGE, priority=99),)


@hookimpl
def footer_widget(state):
    return (FooterWidget(id="huge", lines=((Span("widget " + HUGE),),)),)
"""


def call(tool: str, **given: object) -> dict[str, object]:
    return {"tool": tool, "input": given}


def fields() -> Mapping[str, object]:
    """A turn for each field that a model, a tool or a server fills."""
    part = of_bytes(GIVEN_BYTES // 4)
    options = [{"label": "Red", "description": part}, {"label": f"Blue {part}"}]
    asked = {"question": f"Which? {part}", "header": part, "options": options}
    todo = {"content": f"task {GIVEN}", "status": "pending", "priority": "high", "id": "1"}
    calls: dict[str, dict[str, object]] = {
        "output": call("bash", command="cat huge.txt", description=GIVEN),
        "name": call("read", filePath=f"missing {GIVEN}"),
        "written": call("write", filePath="new.txt", content=GIVEN),
        "question": call("question", questions=[asked]),
        "permission": call("write", filePath="asked.txt", content=GIVEN),
        "todo": call("todowrite", todos=[todo]),
        "tool": call(f"tool {GIVEN}"),
    }
    turns: dict[str, object] = {
        f"do {name}": [{"calls": [each]}, {"text": f"After {name}."}]
        for name, each in calls.items()
    }
    return {
        **turns,
        "do reasoning": {"reasoning": HUGE, "text": "After reasoning."},
        "do fault": [{"fault": {"status": 400, "message": HUGE}}],
    }


FIELDS = tuple(name.removeprefix("do ") for name in fields())


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("way", ["pyte", "tmux-attached"], indirect=True)
@pytest.mark.parametrize("field", FIELDS)
async def test_a_field_of_ten_megabytes_holds_no_key_up(
    pegboard: CommandLine, way: Way, field: str
) -> None:
    turn = fields()[f"do {field}"]
    (pegboard.project / "huge.txt").write_text(HUGE)
    rules = {"edit": {"*": "allow", "asked.txt": "ask"}}
    settings = {"permission": rules, "compaction": {"auto": False}}
    scripts(pegboard, **{f"do {field}": turn}, settings=settings, chunk_chars=LONG_BYTES)

    async with way.opened(*await way.arguments(), columns=100, rows=30) as terminal:
        await terminal.say(f"do {field}")
        took_s = []
        if field in ASKED:
            shown, key = ASKED[field]
            await terminal.see_dialog(shown)
            terminal.press(key)
        await terminal.see("✗ " if field == "fault" else f"After {field}.")
        took_s += [await echo_s(terminal) for _ in range(3)]
        everything, raw = terminal.everything, terminal.raw

    assert max(took_s) < AT_ONCE_S
    assert len(raw) < WRITTEN
    assert (SENT_ON.findall(raw), FORBIDDEN.findall(raw)) == ([], [])
    assert sum(row.startswith(RULE) for row in everything.split("\n")) == 1


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("way", ["pyte", "tmux-attached"], indirect=True)
async def test_titles_and_items_of_ten_megabytes_hold_no_key_up(
    pegboard: CommandLine, way: Way
) -> None:
    scripts(pegboard)
    file = pegboard.home / "script.json"
    script = json.loads(file.read_text())
    script["scripts"][0]["steps"][0]["text"] = HUGE
    file.write_text(json.dumps(script | {"chunk_chars": LONG_BYTES}))
    (pegboard.home / "huge.txt").write_text(HUGE)
    install(pegboard, STATUS.replace("FILE", repr(str(pegboard.home / "huge.txt"))))

    async with way.opened(*await way.arguments(), columns=100, rows=30, ready=RULE) as terminal:
        await terminal.see_now("item ")
        await terminal.say("hello")
        await terminal.see("You said: hello")
        took_s = [await echo_s(terminal) for _ in range(3)]
        await terminal.say("/sessions")
        await terminal.see_now("type to filter")
        terminal.press("escape")
        await terminal.gone("type to filter")
        took_s += [await echo_s(terminal) for _ in range(3)]
        everything, raw = terminal.everything, terminal.raw

    assert max(took_s) < AT_ONCE_S
    assert len(raw) < WRITTEN
    assert (SENT_ON.findall(raw), FORBIDDEN.findall(raw)) == ([], [])
    assert sum(row.startswith(RULE) for row in everything.split("\n")) == 1
