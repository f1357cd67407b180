"""What stands between the command and the first request to a model."""

import json
import os
import subprocess
import sys
from pathlib import Path

from test_shape import HEAVY

FIRST_REQUEST = """
import asyncio, sys
from pathlib import Path
from support.models.model_server import ModelServer, say

loaded = set()

def script(body):
    loaded.update(sys.modules if not loaded else ())
    return say("Hi.")

async def main(folder):
    from pegboard import App, AppOptions, Prompt
    from pegboard.engine import preloading

    preloading.HEAD_START_S = 600  # on a slow machine the request takes longer than that
    async with ModelServer(script) as server:
        provider = {"openai": {"options": {"baseURL": server.url, "apiKey": "k"}}}
        places = {f"{name}_dir": folder / name for name in ("config", "data", "state", "cache")}
        options = AppOptions(config={"provider": provider}, **places)
        async with App.open(folder, options) as app:
            session = await app.create_session()
            await app.prompt(session, Prompt("Hello", model="openai/scripted"))

asyncio.run(main(Path(sys.argv[1])))
print(*sorted({name.partition(".")[0] for name in loaded}))
"""


def test_no_heavy_library_is_loaded_before_the_first_request(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    env["PYTHONPATH"] = str(Path(__file__).parent)

    done = subprocess.run(
        [sys.executable, "-c", FIRST_REQUEST, str(tmp_path)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & HEAVY == set()
    assert "pegboard_plugins" in done.stdout.split()


RUN = """
import atexit, re._compiler, sys

expressions = []
compile = re._compiler.compile

def noting(pattern, flags=0):
    if sys._getframe(3).f_globals["__name__"].startswith("pegboard"):  # who calls a function of re
        expressions.append(pattern)
    return compile(pattern, flags)

re._compiler.compile = noting

from pegboard.engine import preloading
from pegboard.opening import assembly
from pegboard.files import stepsnapshots

# What comes later is not part of the start.
assembly.SWEEP_AFTER_S = preloading.HEAD_START_S = stepsnapshots.HEAD_START_S = 600

described = []

def note(event, args):
    if event == "open" and str(args[0]).endswith("entry_points.txt"):
        described.append(args[0])

sys.addaudithook(note)

def count():
    print(len(described), len(set(described)), len(expressions))
    print(*sys.modules)
    ours = sorted(name for name in sys.modules if name.startswith("pegboard"))
    for package in sorted({name.partition(".")[0] for name in ours}):
        print(package, *(name for name in ours if name.partition(".")[0] == package))

atexit.register(count)

from pegboard.cli.main import main

main()
"""
MOST_EXPRESSIONS = 52
"""Regular expressions of Pegboard that such a run may compile; 49 were counted."""
LATE = {"difflib", "random", "tempfile"}
"""Modules of the standard library that such a run has no use for."""
MOST_FILES = {"pegboard": 116, "pegboard_plugins": 86}
"""What a run with a plain answer may load of Pegboard and of its plugins."""


def _said(folder: Path, program: str) -> list[str]:
    """The lines that a run prints of the answer in this folder, and of what it counts."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    places = ("CONFIG", "DATA", "STATE", "CACHE")
    env |= {f"PEGBOARD_{name}_DIR": str(folder / name.lower()) for name in places}
    env["HOME"] = str(folder / "home")  # a command of the user would be loaded too
    command = [sys.executable, "-c", program, "run", "--model", "scripted/answer.json", "Hello"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_run_with_a_plain_answer_loads_few_files_and_reads_metadata_once(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps({"scripts": [{"steps": [{"text": "Hi."}]}]}))

    _said(tmp_path, RUN)  # the first one makes the database
    said = _said(tmp_path, RUN)

    answer, described, modules, *counts = said
    opened, distributions, expressions = map(int, described.split())
    assert opened == distributions > 0
    assert expressions <= MOST_EXPRESSIONS
    assert set(modules.split()) & LATE == set()
    loaded = {package: names for package, *names in map(str.split, counts)}
    assert answer == "Hi."
    above = {name for name, found in loaded.items() if len(found) > MOST_FILES[name]}
    assert above == set(), loaded


EDIT = """
import atexit, os, sys

from pegboard.engine import preloading
from pegboard.opening import assembly

assembly.SWEEP_AFTER_S = preloading.HEAD_START_S = 600  # what comes later is not part of the calls
started = []

def note(event, args):
    if event == "subprocess.Popen":
        started.append(os.path.basename(args[1][0]))

sys.addaudithook(note)

def count():
    print(*sorted(name for name in sys.modules if "." not in name))
    print(len([name for name in sys.modules if name.startswith("pegboard")]))
    print(*sorted(set(started)))

atexit.register(count)

from pegboard.cli.main import main

main()
"""
MOST_FOR_AN_EDIT = 244
"""Files of ours that a run loads in which a model reads a file and edits it."""


def test_the_first_calls_load_no_more_files_than_these_and_no_heavy_library(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "target.txt").write_text("alpha\n")
    edit = {"filePath": "target.txt", "oldString": "alpha", "newString": "beta"}
    calls = ({"tool": "read", "input": {"filePath": "target.txt"}}, {"tool": "edit", "input": edit})
    steps = [*({"calls": [call]} for call in calls), {"text": "Hi."}]
    config, file = tmp_path / "config", tmp_path / "answer.json"
    config.mkdir()
    (config / "pegboard.toml").write_text('permission = "allow"\n')
    file.write_text(json.dumps({"scripts": [{"steps": steps}]}))

    said = _said(tmp_path, EDIT)

    loaded, files, started = said[-3:]
    assert (tmp_path / "target.txt").read_text() == "beta\n"
    assert set(loaded.split()) & HEAVY == set()
    assert int(files) <= MOST_FOR_AN_EDIT
    assert started == "git"


TURN = """
import asyncio, sys, threading
from pathlib import Path

entered = set()

def enter(frame, event, arg):
    if event == "call" and frame.f_code.co_name != "<module>":
        entered.add(frame.f_code.co_filename)

async def main(folder):
    from pegboard import App, AppOptions, Prompt
    from pegboard.engine import preloading
    from pegboard.files import stepsnapshots

    stepsnapshots.HEAD_START_S = preloading.HEAD_START_S = 600  # what waits for slow answers
    places = {f"{name}_dir": folder / name for name in ("config", "data", "state", "cache")}
    async with App.open(folder, AppOptions(**places)) as app:
        session = await app.create_session()
        sys.setprofile(enter)
        threading.setprofile(enter)
        await app.prompt(session, Prompt("Hello", model="scripted/answer.json"))
        sys.setprofile(None)

asyncio.run(main(Path(sys.argv[1])))
core = Path(sys.modules["pegboard"].__file__).parent
print(*sorted(str(Path(each).relative_to(core)) for each in entered if core in Path(each).parents))
"""
MOST_ENTERED = 46
"""Of so many files of the core a function is called for a plain answer."""


def test_a_plain_answer_enters_no_more_files_of_the_core_than_these(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps({"scripts": [{"steps": [{"text": "Hi."}]}]}))
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}

    done = subprocess.run(
        [sys.executable, "-c", TURN, str(tmp_path)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) <= MOST_ENTERED, done.stdout
