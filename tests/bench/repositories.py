"""The repositories that agents work in: a small one, and one of 20,000 source-like files."""

import random
import subprocess
from pathlib import Path

WORDS = ("session", "message", "provider", "token", "stream", "buffer", "config", "plugin", "event")
FILES = 20_000
FILES_IN_A_FOLDER = 50
FOLDERS_IN_A_PACKAGE = 20
SUFFIXES = ("py", "ts", "md", "json", "go")


def small(folder: Path) -> None:
    """Twenty modules, a README and the file that the `edit` script changes."""
    (folder / "src").mkdir(parents=True)
    for number in range(20):
        text = f"def f{number}():\n    return {number}\n"
        (folder / "src" / f"m{number}.py").write_text(text)
    (folder / "README.md").write_text("# demo\n")
    _finish(folder)


def big(folder: Path) -> None:
    """The same files every time: 20,000 of them in 400 folders."""
    chance = random.Random(42)
    lines = []
    for number in range(2000):
        first, second, third = chance.sample(WORDS, 3)
        lines.append(f"    {first}_{second} = self.{third}({first!r}, {number})\n")
    for number in range(FILES):
        group = number // FILES_IN_A_FOLDER
        place = folder / f"pkg{group // FOLDERS_IN_A_PACKAGE:02d}" / f"mod{group:03d}"
        place.mkdir(parents=True, exist_ok=True)
        body = [f"def func_{number}(self):\n", *chance.choices(lines, k=chance.randint(5, 120))]
        (place / f"f{number:05d}.{SUFFIXES[number % 5]}").write_text("".join(body))
    (folder / ".gitignore").write_text("node_modules/\n*.log\n.cache/\n")
    _finish(folder)


def restore(folder: Path) -> None:
    """Undo what a run has left in a repository."""
    _git(folder, "reset", "-q", "--hard")
    _git(folder, "clean", "-qfdx")


def _finish(folder: Path) -> None:
    (folder / "target.txt").write_text("alpha\n")
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "init")


def _git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, stdin=subprocess.DEVNULL)
