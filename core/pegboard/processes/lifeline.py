"""The lifeline: when this program ends, or is killed, the processes of its tools end too.

A small shell reads from a pipe that only this program holds open. When the pipe breaks, the program
is dead, and the shell kills every process with the program's mark or seal.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping

from pegboard.processes.family import MARK, program_seal

END_LIMIT_S = 2.0
"""How long the shell may take to end after it was stopped."""
# It looks again for a while: a process that was being started gets its mark a moment later.
# The leader's group is killed with it: a program may have cleared its environment.
_SCRIPT = f"""
read -r _ && exit
seal="^Max file locks *$1[0-9]\\{{9\\}} "
found() {{
    grep -ls "{MARK}=$0" /proc/[0-9]*/environ
    grep -ls "$seal" /proc/[0-9]*/limits
}}
for pause in 0 0.02 0.05 0.1 0.2 0.5 1 2; do
    sleep $pause
    files=$(found)
    while [ -n "$files" ]; do
        for file in $files; do
            pid=${{file#/proc/}}
            pid=${{pid%/*}}
            kill -9 "-$pid" "$pid"
        done
        files=$(found)
    done
done
"""


class Lifeline:
    """The lifeline of the processes of one App, which starts with the first process.

    Without `/proc` there is no lifeline, and a killed program leaves its processes running.
    """

    def __init__(self) -> None:
        self._mark = os.urandom(8).hex()
        self._shell: subprocess.Popen[bytes] | None = None
        self._off = not sys.platform.startswith("linux")

    def hold(self) -> Mapping[str, str]:
        """Start the lifeline, and return the environment variable that ties a process to it."""
        if self._shell is None and not self._off:
            self._start()
        return {MARK: self._mark}

    async def aclose(self) -> None:
        """Stop the lifeline without ending processes; a second call does nothing."""
        shell, self._shell, self._off = self._shell, None, True
        if shell is not None:
            await asyncio.to_thread(_dismiss, shell)

    def _start(self) -> None:
        try:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, self._mark, str(program_seal(self._mark))],
                cwd="/",
                env={"PATH": "/usr/bin:/bin"},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # what kills our group leaves it alive
            )
        except OSError:
            self._off = True  # without a shell a tool may still run


def _dismiss(shell: subprocess.Popen[bytes]) -> None:
    try:
        shell.communicate(b"\n", timeout=END_LIMIT_S)
    except subprocess.TimeoutExpired:
        shell.kill()
        shell.wait()
