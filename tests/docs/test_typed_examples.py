"""The examples are typed as two checkers read them: mypy in lint, and pyright here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from docs.pages import ROOT

EXAMPLES = ROOT / "docs" / "examples"


def problems(folder: Path, scratch: Path) -> list[str]:
    """Return what pyright finds in a folder that uses Pegboard as an installed package."""
    settings = {
        "include": [str(folder)],
        "extraPaths": [str(ROOT / "core"), str(ROOT / "plugins"), str(folder)],
        "typeCheckingMode": "standard",
    }
    project = scratch / "pyrightconfig.json"
    project.write_text(json.dumps(settings))
    command = ["-m", "basedpyright", "--outputjson", "-p", str(project)]
    done = subprocess.run(
        [sys.executable, *command, "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [each["message"] for each in found if each["severity"] == "error"]


@pytest.mark.timeout(300)
def test_the_examples_have_no_type_error(tmp_path: Path) -> None:
    assert problems(EXAMPLES, tmp_path) == []


@pytest.mark.timeout(300)
def test_a_wrong_use_of_a_public_name_is_one(tmp_path: Path) -> None:
    code = "from pegboard import App, Prompt\n\nPrompt(5)\nApp.opens\n"
    (folder := tmp_path / "used").mkdir()
    (folder / "wrong.py").write_text(code)

    assert len(problems(folder, tmp_path)) == 2
