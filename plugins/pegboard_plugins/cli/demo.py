"""`pegboard demo`: the agent fixes a small project, without network and API key."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from pegboard import App, AppOptions
from pegboard.cli import Exit, run_async
from pegboard.schema.message import Prompt
from pegboard.unstable import complain, open_workspace, search_path
from pegboard_plugins.cli.message import PromptRequest
from pegboard_plugins.cli.render import Line, diff_lines, open_screen, tail
from pegboard_plugins.cli.run import answer_stream
from pegboard_plugins.cli.tally import Tally
from pegboard_plugins.cli.turn import take_turn
from pegboard_plugins.cli.views import TextView
from pegboard_plugins.shared.frontend import LocalFeed

if TYPE_CHECKING:
    from pegboard_plugins.cli.render import OutputScreen

PROJECT = Path(__file__).with_name("demo_project")
CONFIG = Path(__file__).with_name("demo.toml")
PROMPT = "The tests of ledger fail. Find out why and mend it."
TESTS = ("python3", "-m", "unittest", "-q")
TEST_LINES = 20
COMMAND_LIMIT_S = 60
"""The time limit of git and of the tests, which take a second."""

_IDENTITY = ("-c", "user.name=Pegboard", "-c", "user.email=demo@pegboard.invalid")


@click.command()
@click.option("-m", "--model", metavar="PROVIDER/MODEL", help="Use a real model.")
@click.option(
    "--keep", is_flag=True, help="Keep the project and the session, and print their location."
)
def demo(model: str | None, *, keep: bool) -> int:
    """Watch the agent fix a small project.

    The project is a copy in a temporary folder with a bug and a failing test. The model's answers
    come from a script; the searches, the edit and the test runs are real.
    """
    # The project that we stand in is not the demo's, and has no program for it either.
    os.environ["PATH"] = search_path(os.environ, root=open_workspace(Path.cwd()).worktree)
    with _folder(keep=keep) as folder, answer_stream() as out:
        return run_async(_demonstrate(folder, model, out))


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    if keep:
        folder = Path(tempfile.mkdtemp(prefix="pegboard-demo-"))
        yield folder
        click.echo(f"saved in {folder}", err=True)
        return
    with tempfile.TemporaryDirectory(prefix="pegboard-demo-", ignore_cleanup_errors=True) as name:
        yield Path(name)


async def _demonstrate(folder: Path, model: str | None, out: TextIO) -> int:

    project = await asyncio.to_thread(make_project, folder)
    screen = open_screen(out, sys.stderr, os.environ)
    screen.line(Line(head="project", text=str(project), style="tool"))
    screen.line(Line(head=">", text=PROMPT))
    async with App.open(project, _options(folder, model)) as app:
        session = await app.create_session(title="Demo")
        tally, view = Tally(session.id, is_saved=False), TextView(screen)
        view.begin(tally, project)
        prompt = PromptRequest(prompt=Prompt(PROMPT, model=model))
        result = await take_turn(LocalFeed(app), prompt, view, tally)
        view.end(result)
    if result.error:
        complain(result.error)
    passed = await _show_outcome(project, screen)
    return result.exit if result.exit is not Exit.DONE or passed else Exit.FAILED


def make_project(folder: Path) -> Path:
    """Create a git repository in `folder` with the demo project as its first commit."""
    project = folder / "ledger"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
    _git(project, "init", "--quiet", "--initial-branch=main")
    (project / ".git" / "info" / "exclude").write_text("__pycache__/\n", encoding="utf-8")
    _git(project, "add", "--all")
    _git(project, *_IDENTITY, "commit", "--quiet", "--message", "Split amounts between people")
    return project


def _options(folder: Path, model: str | None) -> "AppOptions":
    """Return options that store all data of the demo in the folder.

    For a real `model`, the user's configuration and environment apply, too.
    """
    said = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    own = {name: value for name, value in os.environ.items() if not name.startswith("PEGBOARD_")}
    return AppOptions(
        config={**said, "model": model or said["model"]},
        data_dir=folder / "data",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
        config_dir=None if model else folder / "config",
        env=dict(os.environ) if model else own,
    )


async def _show_outcome(project: Path, screen: "OutputScreen") -> bool:
    """Print the agent's changes and a run of the tests; return whether the tests pass."""
    diff = await asyncio.to_thread(_git, project, "diff", "--no-color", "--no-ext-diff")
    screen.line(Line(head="$", text="git diff", style="tool"))
    for line in diff_lines(diff):
        screen.line(line)
    screen.line(Line(head="$", text=" ".join(TESTS), style="tool"))
    code, output = await asyncio.to_thread(run_tests, project)
    for line in tail(output, limit=TEST_LINES, style="done" if code == 0 else "error"):
        screen.line(line)
    screen.close()
    return code == 0


def run_tests(project: Path) -> tuple[int, str]:
    """Run the project's tests; return the exit code and output of the test run."""
    done = subprocess.run(
        (sys.executable, *TESTS[1:]),
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=False,
    )
    return done.returncode, done.stdout


def _git(project: Path, *arguments: str) -> str:
    """Run git without the user's and the system's settings, and return the output of git."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ("git", *arguments),
        cwd=project,
        env={**kept, **settings, "PATH": search_path(kept, root=project)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=True,
    ).stdout
