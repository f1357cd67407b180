"""The page on scripted models: its file is played, and each field that a file can have is named."""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from docs.pages import ROOT, blocks
from pegboard.testing import TurnRecord
from pegboard_plugins.scripted import transcript

RunTurn = Callable[..., TurnRecord]
PAGE = ROOT / "docs" / "how-to" / "script-a-model.md"
KINDS = (
    transcript.ScriptedTranscript,
    transcript.Script,
    transcript.When,
    transcript.ScriptStep,
    transcript.ScriptedCall,
    transcript.ScriptedFault,
)


def test_the_file_that_is_shown_is_played(run_turn: RunTurn, tmp_path: Path) -> None:
    (script,) = [each.text for each in blocks("json") if each.page == PAGE]
    (hello,) = [
        each.text
        for each in blocks("python")
        if each.file == "tool/hello.py" and each.page.name == "first-tool.md"
    ]
    file = tmp_path / "greet.json"
    file.write_text(script)
    given = {
        "script": [],
        "config": {"model": f"scripted/{file}"},
        "files": {"tool/hello.py": hello},
    }

    turn = run_turn(prompt="Greet Ada with your hello tool.", **given)

    assert turn.failures == ()
    assert [(each.tool, each.input) for each in turn.calls] == [("hello", {"name": "Ada"})]
    assert turn.text == "The tool says: Hello, Ada!"


def test_another_prompt_has_the_other_script(run_turn: RunTurn, tmp_path: Path) -> None:
    (script,) = [each.text for each in blocks("json") if each.page == PAGE]
    file = tmp_path / "greet.json"
    file.write_text(script)

    turn = run_turn(prompt="Who are you?", script=[], config={"model": f"scripted/{file}"})

    assert turn.text == "I only greet."


def test_every_field_of_a_file_is_named() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.read_text()))

    missing = {name for kind in KINDS for name in _fields(kind)} - named

    assert missing == set()


def _fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return kind.__struct_encode_fields__
