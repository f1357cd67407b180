"""Names and arguments that are not UTF-8 are refused in a sentence that names them."""

import os
import subprocess
from pathlib import Path

import pytest

from plugins.cli.commands import COMMAND, CommandLine

BAD = "caf\udce9"
"""As Python reads the name `caf\\xe9` of a file."""


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    """The command line, in an empty project."""
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path, tmp_path / "project")


def refusal(pegboard: CommandLine, *words: str, env: dict[str, str] | None = None) -> str:
    """Return the one line that a command which is refused writes to standard error."""
    done = subprocess.run(
        [os.fsencode(each) for each in (COMMAND, *words)],
        cwd=os.fsencode(pegboard.project),
        env=pegboard.environment() if env is None else env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert list(pegboard.home.rglob("crash-*")) == []
    [line] = [each for each in done.stderr.splitlines() if each.startswith("error: ")]
    assert "not UTF-8" in line
    assert "caf" in line
    return line


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--title", BAD, "hi"),
        ("run", "-f", BAD, "hi"),
        ("run", f"look at @{BAD}"),
        ("run", "-s", BAD, "hi"),
        ("session", "search", BAD),
        ("session", "show", BAD),
    ],
)
def test_an_argument_is_named(pegboard: CommandLine, words: tuple[str, ...]) -> None:
    Path(pegboard.project, BAD).write_text("x")
    if words[0] == "run":
        words = (*words, "-m", pegboard.script({"text": "never"}))

    refusal(pegboard, *words)


@pytest.mark.parametrize("words", [("session", "list"), ("run", "hi"), ("doctor",)])
def test_the_path_of_a_project_is_named(pegboard: CommandLine, words: tuple[str, ...]) -> None:
    pegboard.project = pegboard.home / BAD
    pegboard.project.mkdir()

    assert "rename the folder" in refusal(pegboard, *words)


@pytest.mark.parametrize("words", [("session", "list"), ("run", "hi"), ("doctor",)])
def test_a_home_folder_is_named(pegboard: CommandLine, words: tuple[str, ...]) -> None:
    env = {k: v for k, v in pegboard.environment().items() if not k.endswith("_DIR")}

    line = refusal(pegboard, *words, env={**env, "HOME": str(pegboard.home / BAD)})

    assert "PEGBOARD_CONFIG_DIR" in line
