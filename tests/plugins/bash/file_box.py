"""A box in which lines are run over a small tree of files, to see what they read and change."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

import pytest

from plugins.bash.file_trace import OPTIONS as TRACED
from plugins.bash.file_trace import changed_by_calls

DRIVER = Path(__file__).with_name("boxed_files.py")
AT_ONCE = 500
LONGEST_S = 600
LONG_BEFORE = 1_500_000_000
PLAIN = ("a.txt", "b.txt", "c.log", "x.txt")
FOLDERS = (
    *("src", "src/sub", "docs", "a b", ".hidden", "data", "build", "build/tmp", "empty"),
    *("private", "[x]"),
)
OTHERS = (
    *("README.md", "B.TXT", "with space.txt", "[x].txt", ".env", ".env.local", ".dotfile"),
    *("src/main.py", "src/util.py", "docs/guide.md", "data/1.csv", "data/2.csv", "data/3.csv"),
    *("private/key.pem", "a b/c d.txt", "build/out.o"),
)
AT_HOME = ("notes.txt", "docs/letter.txt", ".bashrc", ".ssh/id_rsa", ".config/app.conf")
LINKS = {
    "link_file": "a.txt",
    "link_dir": "src",
    "link_out": "../notes.txt",
    "link_env": ".env",
    "link_up": "..",
    "dangling": "nowhere.txt",
}
PATCH = """\
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
-x a.txt
+y a.txt
 b
--- /dev/null
+++ b/src/patched.txt
@@ -0,0 +1 @@
+new
"""


def environment(root):
    """What the shell of a line is given."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(root / "home"),
        "LANG": "C.UTF-8",
        "USER": "me",
    }


def project_of(root):
    """The project in the tree, which is in the home."""
    return root / "home" / "proj"


def needs_file_box():
    """Skip where no box can be made."""
    for name in ("bwrap", "bash", "git", "strace"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
    done = subprocess.run(
        ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no box can be made here: {done.stderr.decode(errors='replace')}")


def make_tree(root):
    """A home with a project, which is a repository, and a folder outside of both."""
    project = project_of(root)
    for folder in FOLDERS:
        (project / folder).mkdir(parents=True)
    (root / "out").mkdir()
    plain = [f"{folder}/{name}" for folder in FOLDERS for name in PLAIN if folder != "empty"]
    for name in (*PLAIN, *plain, *OTHERS):
        (project / name).write_text(f"x {name}\nb\n")
    for name in AT_HOME:
        (root / "home" / name).parent.mkdir(exist_ok=True)
        (root / "home" / name).write_text(f"x {name}\n")
    (root / "out" / "a.txt").write_text("x out\n")
    (project / "list.txt").write_text("b.txt\nsrc/b.txt\n")
    (project / "fix.patch").write_text(PATCH)
    for name, target in LINKS.items():
        (project / name).symlink_to(target)
    with tarfile.open(project / "arc.tar", "w") as archive:
        for name in ("a.txt", "src/main.py"):
            archive.add(project / name, name)
        archive.add(project / "b.txt", "unpacked/new.txt")
    _commit(project)
    for path in [root, *root.rglob("*")]:
        os.utime(path, (LONG_BEFORE, LONG_BEFORE), follow_symlinks=False)
    _git(project, "update-index", "--refresh")


def _commit(project):
    _git(project, "init", "-q", "--template=", "-b", "main")
    for setting in ("core.checkStat minimal", "core.trustctime false", "user.name me"):
        _git(project, "config", *setting.split())
    _git(project, "config", "user.email", "me@example.org")
    (project / ".git" / "hooks").mkdir()
    (project / ".git" / "hooks" / "pre-push").write_text("x\n")
    (project / ".gitignore").write_text(".env*\nbuild/\n")
    _git(project, "add", ".")
    _git(project, "commit", "-q", "-m", "first")


def _git(project, *words):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", *words], cwd=project, env=env, check=True, timeout=60)


def _box(root, trace):
    """The options of a box with the programs of this machine and, empty, the tree's folder."""
    python = {Path(sys.base_prefix), Path(sysconfig.get_path("stdlib")).parents[1]}
    options = ["--unshare-all", "--as-pid-1", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib64"):
        folder = Path("/", name)
        if folder.is_symlink():
            options += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.exists():
            options += ["--ro-bind", str(folder), str(folder)]
    for name in ("/etc/alternatives", "/etc/ld.so.cache"):
        options += ["--ro-bind-try", name, name]
    for folder in sorted(python):
        if folder != Path("/usr"):
            options += ["--ro-bind", str(folder), str(folder)]
    options += ["--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc"]
    options += ["--ro-bind", str(root), "/pristine", "--tmpfs", str(root)]
    return [*options, "--bind", trace, "/trace", "--ro-bind", str(DRIVER), "/driver"]


def observed(lines, root, *, traced=False):
    """For each line what it has read and changed in the tree, by their paths.

    Of lines that are `traced` also each path that was opened to write, or changed, in `calls`.
    """
    found = []
    for at in range(0, len(lines), AT_ONCE):
        found += _observed(lines[at : at + AT_ONCE], root, traced=traced)
    return found


def _observed(lines, root, *, traced):
    job = {"root": str(root), "cwd": str(project_of(root)), "env": environment(root)}
    python = str(Path(sys.executable).resolve())
    with tempfile.NamedTemporaryFile() as trace:
        tracing = ["strace", *TRACED, "-o", "/trace"] if traced else []
        done = subprocess.run(
            ["bwrap", *_box(root, trace.name), *tracing, python, "-I", "-S", "/driver"],
            input=json.dumps({**job, "lines": lines}).encode(),
            capture_output=True,
            check=False,
            timeout=LONGEST_S,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
        found = json.loads(done.stdout)
        calls = changed_by_calls(Path(trace.name).read_text(errors="replace"))
    for number, each in enumerate(found):
        each["calls"] = calls.get(number, set())
    return found
