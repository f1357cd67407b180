"""Runs lines in a real bash where there is no program, and notes each that it would start.

This is the first process of a box without network: it reads lines from its input, as JSON, and
writes for each the words of what bash looked for, behind the folder where it did. They are noted
by `command_not_found_handle`. The project and the home are the folders that it is told.
"""

import json
import os
import resource
import shutil
import sys
import time
from pathlib import Path

WORK, HOME, LOG = Path(sys.argv[1]), Path(sys.argv[2]), Path("/tmp/log")
LONGEST_S = 0.5
MOST_NOTED = 60
HANDLE = (
    "() { builtin local a IFS=' '; builtin printf -v a '%s\\1' \"$PWD\" \"$@\";"
    " a=${a//$'\\2'}; a=${a//$'\\n'/$'\\3'};"  # two that write at once mix their lines
    " builtin printf '%s\\2' \"$a\" >> /tmp/log; builtin echo out;"
    " builtin return $((RANDOM & 1))\n}"
)
ENV = {
    "PATH": "/nowhere",
    "HOME": str(HOME),
    "LANG": "C.UTF-8",
    "BASH_FUNC_command_not_found_handle%%": HANDLE,
}


def fresh():
    for folder in (WORK, HOME):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    (WORK / "src").mkdir()
    for name in ("a.py", "src/main.py", ".env"):
        (WORK / name).write_text("x\n")
    LOG.write_text("")


def started(line, nothing):
    """The words of each program that bash looks for."""
    child = os.fork()
    if child == 0:
        os.setsid()
        for number in range(3):
            os.dup2(nothing, number)
        os.chdir(WORK)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
        os.execve("/bin/bash", [b"bash", b"-c", line.encode(errors="surrogateescape")], ENV)
    wait_for(child)
    noted = LOG.read_bytes()[:60_000].decode(errors="surrogateescape").split("\2")[:-1]
    return [each.replace("\3", "\n").split("\1")[:-1] for each in noted[:MOST_NOTED]]


def wait_for(child):
    """End the line and all that it has left behind."""
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.0005)
    time.sleep(0.0015)  # a process substitution may still note itself
    try:
        os.kill(-1, 9)
        while os.waitpid(-1, 0):
            pass
    except (ProcessLookupError, ChildProcessError):
        pass


def main():
    lines = json.load(sys.stdin)
    answers, nothing = os.dup(1), os.open("/dev/null", os.O_RDWR)
    found = []
    for line in lines:
        fresh()
        found.append(started(line, nothing))
    os.write(answers, b"")
    with os.fdopen(answers, "w") as out:
        json.dump(found, out)


if __name__ == "__main__":
    main()
