"""Hook scripts as people have them, in the dialects of three products, each in a run."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from pegboard.errors import PromptRefusedError
from pegboard.schema.part import Completed, Failed, ToolPart
from support.plugins.hook_house import CLAUDE, CODEX, GEMINI, House, Json

SCRIPTS = Path(__file__).parents[2] / "data" / "hooks"
CASES: list[Json] = json.loads((SCRIPTS / "cases.json").read_text())
PLACES = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI}
LEAST_CASES = 50


def test_there_are_fifty_scripts_each_with_a_case() -> None:
    files = {str(path.relative_to(SCRIPTS)) for path in SCRIPTS.glob("*/*")}

    assert files == {case["script"] for case in CASES}
    assert len(files) >= LEAST_CASES


def _call(case: Json) -> Json:
    """Return the call that the model makes."""
    if case["call"] == "write":
        given = {"filePath": case.get("path", "made.txt"), "content": "text\n"}
        return {"tool": "write", "input": given}
    if case["call"] == "missing":
        return {"tool": "read", "input": {"filePath": "none.txt"}}
    command = case.get("command", "echo ran > ran.txt")
    return {"tool": "bash", "input": {"command": command, "description": "Try it"}}


def _installed(house: House, case: Json) -> None:
    """Write the hook file that names the script of a case."""
    script = Path(shutil.copy(SCRIPTS / case["script"], house.home))
    interpreter = "sh" if script.suffix == ".sh" else sys.executable
    place = PLACES[case["script"].partition("/")[0]]
    house.hook(case["event"], f"{interpreter} {script}", at=place, matcher=case.get("matcher"))


@pytest.mark.parametrize("case", CASES, ids=[case["script"] for case in CASES])
async def test_a_script_has_the_effect_that_it_has_elsewhere(tmp_path: Path, case: Json) -> None:
    house, text = House(tmp_path), case["text"]
    _installed(house, case)
    scripts: list[Json] = [
        {"when": {"prompt": text or "never asked"}, "steps": [{"text": "Went on."}]},
        {"steps": [{"calls": [_call(case)]}, {"text": "Done."}]},
    ]
    config = {"permission": {"*": "allow", "bash": "ask"}} if case.get("asks") else {}
    async with house.played(scripts, config=config) as app:
        session = await app.create_session()
        if case["expected"] == "refused":
            with pytest.raises(PromptRefusedError, match=text):
                await app.prompt(session, case.get("prompt", "Do it"))
            return
        answer = await app.prompt(session, case.get("prompt", "Do it"))
        turns = await app.list_turns(session.id)
    parts = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    state = parts[0].state
    match case["expected"]:
        case "denied" | "error":
            assert isinstance(state, Failed)
            assert text in state.error
            assert not house.ran
        case "ran":
            assert house.ran
        case "result":
            assert isinstance(state, Completed)
            assert text in state.output
        case "prompt":
            assert text in turns[0].text
        case "goes on":
            assert answer.text == "Went on."
        case "file":
            assert text in (tmp_path / case["file"]).read_text()
        case unknown:
            pytest.fail(f"no expectation is called {unknown}")
