"""Runs lines in a real bash over a tree of files, and notes what each reads and changes.

This is the first process of a box without network. The job comes from its input, as JSON: the
`root` of the tree, the folder to work in, the environment and the lines. `/pristine` has the tree
as it is before each line. A line's changes are what `lstat` shows, its reads are the times of the
last access: they are put back to `LONG_AGO`, and reading a file that is so old moves them.
"""

import ctypes
import json
import os
import resource
import shutil
import signal
import stat
import sys
import time
from pathlib import Path

PRISTINE = "/pristine"
LONG_AGO = 10**9
LONGEST_S = 3.0
MOST_BYTES = 200_000
PR_SET_CHILD_SUBREAPER = 36


def entries(folder, found):
    """All below a folder, each path with what `lstat` says of it."""
    try:
        listed = list(os.scandir(folder))
    except PermissionError:
        Path(folder).chmod(0o700)
        listed = list(os.scandir(folder))
    for entry in listed:
        found[entry.path] = entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            entries(entry.path, found)
    return found


class Tree:
    """A tree that is put back after each line."""

    def __init__(self, root):
        self.root = root
        self.copies = {}
        self.stats = {}
        for path in [PRISTINE, *entries(PRISTINE, {})]:
            self.copies[root + path.removeprefix(PRISTINE)] = self._copy(path)
        shutil.rmtree(root, ignore_errors=True)
        for path in self.copies:
            self._make(path)

    @staticmethod
    def _copy(path):
        seen = os.lstat(path)
        if stat.S_ISLNK(seen.st_mode):
            return seen, str(Path(path).readlink())
        return seen, None if stat.S_ISDIR(seen.st_mode) else Path(path).read_bytes()

    def _make(self, path):
        seen, content = self.copies[path]
        if stat.S_ISLNK(seen.st_mode):
            Path(path).symlink_to(content)
        elif content is None:
            Path(path).mkdir(exist_ok=True)
        else:
            Path(path).write_bytes(content)
        if not stat.S_ISLNK(seen.st_mode):
            Path(path).chmod(stat.S_IMODE(seen.st_mode))
        self._age(path)

    def _age(self, path):
        seen, _ = self.copies[path]
        os.utime(path, ns=(LONG_AGO, seen.st_mtime_ns), follow_symlinks=False)
        self.stats[path] = os.lstat(path)

    def noted(self):
        """What has happened since the tree was put back, and puts it back again."""
        now = entries(self.root, {})
        gone = [path for path in self.stats if path not in now and path != self.root]
        new = [path for path in now if path not in self.stats]
        changed = {}
        for path in self.stats.keys() & now.keys():
            if how := self._change(self.stats[path], now[path]):
                changed[path] = how
        names = {each.st_ino: path for path, each in self.stats.items()}
        read = [  # by the name that it had, wherever it is now
            names[each.st_ino]
            for each in now.values()
            if each.st_ino in names
            and each.st_atime_ns not in (LONG_AGO, each.st_mtime_ns)  # as `touch` leaves them
            and stat.S_ISREG(each.st_mode)
        ]
        self._restore(new, [*gone, *changed], read)
        marks = {**dict.fromkeys(gone, "gone"), **dict.fromkeys(new, "new"), **changed}
        return {"changed": marks, "read": read}

    @staticmethod
    def _change(before, after):
        """How a path has changed; of a folder what is in it does not count."""
        if before.st_ino != after.st_ino or stat.S_IFMT(before.st_mode) != stat.S_IFMT(
            after.st_mode
        ):
            return "replaced"
        if before.st_mode != after.st_mode:
            return "mode"
        if stat.S_ISDIR(before.st_mode):
            return ""
        is_same = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
        return "" if is_same else "content"

    def _restore(self, new, lost, read):
        for path in sorted(new):
            self._remove(path)
        for path in sorted(lost):
            if self.copies[path][1] is not None or not _is_folder(path):
                self._remove(path)
            self._make(path)
        for path in read:
            if path not in lost:
                self._age(path)
        for path in self.stats:  # what was linked, moved away and back, or read as a link
            if os.lstat(path).st_ctime_ns != self.stats[path].st_ctime_ns:
                self._age(path)

    @staticmethod
    def _remove(path):
        if _is_folder(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)


def _is_folder(path):
    return Path(path).is_dir() and not Path(path).is_symlink()


def run(line, cwd, env, nothing):
    """Run a line to its end, with all that it has left behind; whether it ended in time."""
    child = os.fork()
    if child == 0:
        os.setsid()
        for number in range(3):
            os.dup2(nothing, number)
        os.chdir(cwd)
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
        os.execve("/bin/bash", ["bash", "-p", "-c", line], env)
    deadline = time.monotonic() + LONGEST_S
    try:
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.0003)
        os.kill(-1, signal.SIGKILL)
        while os.waitpid(-1, 0):
            pass
    except (ChildProcessError, ProcessLookupError):
        pass
    return time.monotonic() < deadline


def main():
    job = json.load(sys.stdin)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # where a trace is the first process
    answers, nothing = os.dup(1), os.open("/dev/null", os.O_RDWR)
    tree = Tree(job["root"])
    found = []
    for number, line in enumerate(job["lines"]):
        os.access(f"/line/{number}", os.F_OK)  # where a trace finds it
        in_time = run(line, job["cwd"], job["env"], nothing)
        os.access("/line/", os.F_OK)
        found.append({**tree.noted(), "in_time": in_time})
    with os.fdopen(answers, "w") as out:
        json.dump(found, out)


if __name__ == "__main__":
    main()
