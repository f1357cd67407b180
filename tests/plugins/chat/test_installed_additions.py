"""A package that is installed in an environment of its own adds to the chat, and may fail at it."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from plugins.chat.conftest import WAYS, Way
from plugins.chat.screen import scripts
from plugins.chat.test_additions import CALL, FAILURES, PLUGIN, broken, failing
from plugins.chat.test_leaving import shell_of
from plugins.cli.commands import CommandLine

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "pegboard-mine"
version = "0.1.0"

[project.entry-points.pegboard]
mine = "pegboard_mine"

[tool.hatch.build.targets.wheel]
only-include = ["pegboard_mine.py"]
"""
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the package by pip; all else is that of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = folder / "venv" / "lib" / version / "site-packages"
    link = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (own / "_tested_environment.pth").write_text(link)
    source = folder / "pegboard-mine"
    source.mkdir()
    (source / "pyproject.toml").write_text(PYPROJECT)
    (source / "pegboard_mine.py").write_text(PLUGIN)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    options = ["-q", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "install", *options, str(source)], check=True, stdin=subprocess.DEVNULL)
    return folder / "venv"


def module_of(environment: Path) -> Path:
    (found,) = environment.glob("lib/*/site-packages/pegboard_mine.py")
    return found


def program(environment: Path) -> tuple[str, ...]:
    """`pegboard chat` of the environment."""
    code = "from pegboard.cli.main import main; main()"
    return (str(environment / "bin" / "python"), "-c", code, "chat")


@pytest.mark.parametrize("way", WAYS, indirect=True)
async def test_what_an_installed_package_adds_is_there(
    pegboard: CommandLine, way: Way, environment: Path
) -> None:
    module_of(environment).write_text(PLUGIN)
    scripts(pegboard, go=[{"calls": [CALL]}, {"text": "End."}])
    arguments = await way.arguments()

    async with shell_of(pegboard, way) as shell:
        terminal = shell.terminal
        await shell.begin(*arguments, program=program(environment))
        await terminal.see_now("status of build")
        terminal.press("c-y")
        await terminal.see("the key was pressed")
        await terminal.say("/greet you")
        await terminal.see_now("Whom?")
        terminal.press("down", "enter")
        await terminal.see("hello Grace you in project")
        await terminal.say("go")
        await terminal.see("End.")

    assert "● bash drawn by a plugin" in terminal.above


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.parametrize("how", FAILURES)
async def test_an_installed_package_that_fails_is_named_and_the_chat_goes_on(
    pegboard: CommandLine, way: Way, environment: Path, how: str
) -> None:
    module_of(environment).write_text(broken(how))
    scripts(pegboard, go=[{"calls": [CALL]}, {"text": "End."}])
    arguments = await way.arguments()

    async with shell_of(pegboard, way) as shell:
        terminal = shell.terminal
        await shell.begin(*arguments, program=program(environment))
        await failing(terminal, how)

    assert "● bash echo out" in terminal.above
