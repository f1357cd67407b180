"""What a start does not do."""

import subprocess
import sys

from plugins.cli.commands import CommandLine

COUNTING = """
import atexit, gc, sys
from pegboard.cli.main import main

collections = []
gc.callbacks.append(lambda phase, facts: collections.append(phase))
atexit.register(lambda: print("collections:", len(collections), file=sys.stderr))
main()
"""


def test_no_garbage_is_looked_for_before_an_answer(pegboard: CommandLine) -> None:
    model = pegboard.script({"text": "Hello."})
    command = [sys.executable, "-c", COUNTING, "run", "-m", model, "hello"]
    env = pegboard.environment()

    done = subprocess.run(
        command, cwd=pegboard.project, env=env, capture_output=True, text=True, check=True
    )

    assert done.stdout == "Hello.\n"
    assert "collections: 0" in done.stderr.splitlines()
