"""How long finding the skills of 100 libraries takes, compared with looking at their files.

    PYTHONPATH=tests:tests/bench python -m bench_skills [--rounds 15]

Prints the time of the first search, which reads the records, that of a later one, and its ratio to
a `stat` of each skill's file. The budget of a later search is 10 ms on an idle machine.
"""

import argparse
import base64
import hashlib
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pegboard_plugins.skill import FILE, SkillSite, find_skills

LIBRARIES = 100
TEXT = "---\nname: skill-{}\ndescription: Does it.\n---\n" + "Text.\n" * 500


def project(root: Path) -> list[Path]:
    """Make a project with libraries that have a skill each, and return the files of these."""
    site = root / ".venv" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (root / ".venv" / "pyvenv.cfg").touch()
    names = [f"lib{n}" for n in range(LIBRARIES)]
    (root / "pyproject.toml").write_text(f"[project]\ndependencies = {json.dumps(names)}\n")
    files = []
    for n, name in enumerate(names):
        file = site / name / ".agents" / "skills" / f"skill-{n}" / FILE
        file.parent.mkdir(parents=True)
        content = TEXT.format(n).encode()
        file.write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        others = "".join(f"{name}/module{i}.py,sha256=x,1\n" for i in range(100))
        line = f"{file.relative_to(site).as_posix()},sha256={digest},{len(content)}\n"
        (info / "RECORD").write_text(others + line)
        files.append(file)
    return files


def seconds(act: Callable[[], object]) -> float:
    """Return the time of one call."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        files = project(root)
        site = SkillSite(directory=root, worktree=root, home=None, config_dir=None)
        first = seconds(lambda: find_skills(site))
        later = min(seconds(lambda: find_skills(site)) for _ in range(rounds))
        plain = min(seconds(lambda: [file.stat() for file in files]) for _ in range(rounds))
    print(  # noqa: T201 - its answer
        f"first {first * 1e3:.1f} ms, later {later * 1e3:.1f} ms, {later / plain:.1f} x stat"
    )


if __name__ == "__main__":
    main()
