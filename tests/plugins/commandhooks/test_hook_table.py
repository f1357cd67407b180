"""The table of honoured events: the docs repeat it, and a test holds each of its cells."""

import json
from pathlib import Path

import pytest

from pegboard.schema.event import SessionWarned
from pegboard.testing import EventRecorder
from pegboard_plugins.commandhooks.honoured import page, share
from pegboard_plugins.commandhooks.hookcommand import CommandHook, Product
from pegboard_plugins.commandhooks.hookevents import COMMON, ROWS
from pegboard_plugins.commandhooks.hookfields import FIELDS
from pegboard_plugins.commandhooks.hookfiles import read_hooks
from pegboard_plugins.commandhooks.outcome import Ended, HookOutcome, outcome_of
from support.plugins.hook_house import House, own

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
FIRING = [row for row in ROWS if row.runs and row is not COMMON]


def test_the_docs_repeat_the_table() -> None:
    text = (ROOT / "docs" / "reference" / "command-hooks.md").read_text()

    assert page() in text


def test_each_cell_has_a_test() -> None:
    tests = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    named = [test for row in ROWS for test in (row.test, *(each.test for each in row.fields))]
    named += [each.test for each in FIELDS]

    assert [test for test in named if f"def {test}(" not in tests] == []


def test_the_share_of_honoured_cells_is_counted() -> None:
    counted = {product: share(product) for product in ("", "claude", "codex", "gemini")}
    for product, (honoured, cells) in counted.items():
        print(f"{product or 'all'}: {honoured} of {cells} cells honoured")  # noqa: T201 - the figures

    assert all(0 < honoured < cells for honoured, cells in counted.values())


def _answer(event: str, key: str, value: object, *, is_inner: bool) -> HookOutcome:
    hook = CommandHook(
        product="claude", event=event, name=event, command="check", file=Path("settings.json")
    )
    answer = own(event, **{key: value}) if is_inner else {key: value}
    return outcome_of(hook, Ended(exit_code=0, stdout=json.dumps(answer)))


UNHONOURED = [
    (row.name, key)
    for row in FIRING
    for field in (*COMMON.fields, *row.fields)
    if not field.is_honoured
    for key in field.keys
]
HONOURED = [
    (row.name, key)
    for row in FIRING
    for field in (*COMMON.fields, *row.fields)
    if field.is_honoured
    for key in field.keys
]


@pytest.mark.parametrize("is_inner", [False, True])
@pytest.mark.parametrize(("event", "key"), UNHONOURED)
def test_each_field_without_an_effect_is_named(event: str, key: str, *, is_inner: bool) -> None:
    if event == "PermissionRequest" and key.startswith("updated"):
        decision = {"behavior": "deny", key: {}}
        found = _answer(event, "decision", decision, is_inner=True)
    else:
        found = _answer(event, key, value=False, is_inner=is_inner and key != "continue")

    assert [note for note in found.notes if f"`{key}` of its output is not honoured" in note] != []


@pytest.mark.parametrize(("event", "key"), HONOURED)
def test_output_with_an_effect_is_not_named(event: str, key: str) -> None:
    found = _answer(event, key, value="x", is_inner=False)

    assert [note for note in found.notes if "not honoured" in note] == []


async def test_output_that_is_not_honoured_is_named_once(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.hook("SessionStart", house.saying(own("SessionStart", watchPaths=["/x"])))
    async with house.played([{"steps": [{"text": "Hi."}]}]) as app, EventRecorder(app) as seen:
        for _ in range(2):
            await app.prompt(await app.create_session(), "Do it")

    [warning] = seen.of(SessionWarned)
    assert "`watchPaths` of its output" in warning.message


@pytest.mark.parametrize(
    ("product", "name"),
    [
        (product, name)
        for row in ROWS
        if not row.runs
        for product, name in (("claude", row.claude), ("codex", row.codex), ("gemini", row.gemini))
        if name
    ],
)
def test_an_event_that_never_fires_is_named(tmp_path: Path, product: Product, name: str) -> None:
    file = tmp_path / "settings.json"
    hooks = {name: [{"hooks": [{"type": "command", "command": "true"}]}]}
    file.write_text(json.dumps({"hooks": hooks}))
    read = read_hooks(product, file, is_project=False)

    assert read is not None
    assert read.hooks == ()
    (why,) = {row.note for row in ROWS if name in (row.claude, row.codex, row.gemini)}
    assert why
    assert read.notes == (f"{file}: the event {name} is not honoured: {why}",)
