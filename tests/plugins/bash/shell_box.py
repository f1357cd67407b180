"""A box in which lines are given to a real bash that finds no program and no network."""

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("boxed_bash.py")
AT_ONCE = 500
LONGEST_S = 600


def needs_box():
    """Skip where no box can be made."""
    if shutil.which("bwrap") is None or shutil.which("bash") is None:
        pytest.skip("bubblewrap or bash is not installed")
    done = subprocess.run(_box("/bin/bash", "-c", ":"), capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"no box can be made here: {done.stderr.decode(errors='replace')}")


def _box(*command):
    """The command in a root that has bash, Python and their libraries alone."""
    folders = [Path(path) for path in ("/lib", "/lib64", "/usr/lib", "/usr/lib64")]
    python = {Path(sys.base_prefix), Path(sysconfig.get_path("stdlib")).parents[1]}
    binds = [
        word
        for folder in [*folders, *sorted(python)]
        if folder.exists() and folder not in (Path("/"), Path("/usr"))
        for word in ("--ro-bind", str(folder), str(folder))
    ]
    own = [
        "--ro-bind",
        shutil.which("bash") or "",
        "/bin/bash",
        "--ro-bind",
        str(DRIVER),
        "/driver",
    ]
    made = ["--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc"]
    return [
        "bwrap",
        "--unshare-all",
        "--as-pid-1",
        "--die-with-parent",
        *binds,
        *own,
        *made,
        *command,
    ]


def started_by(lines):
    """For each line the words of all programs that a real bash would start."""
    found = started_in(lines, work="/tmp/work", home="/tmp/home")
    return [[argv for _, *argv in ran] for ran in found]


def started_in(lines, *, work, home):
    """For each line the folder, and the words, of all programs that a real bash would start."""
    found = []
    python = str(Path(sys.executable).resolve())
    for at in range(0, len(lines), AT_ONCE):
        done = subprocess.run(
            _box(python, "-I", "-S", "/driver", work, home),
            input=json.dumps(lines[at : at + AT_ONCE]).encode(),
            capture_output=True,
            check=True,
            timeout=LONGEST_S,
        )
        found += json.loads(done.stdout)
    return found
