"""What a first tool call imports is loaded while the model thinks, and not before."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio, json, sys, threading
from pathlib import Path
from support.models.played import HI, Played, call, calls, opened, text

LOADED = (
    "pegboard_plugins.bash.scan",
    "pegboard_plugins.bash.approving",
    "pegboard.files.ledger",
)
modules = {}

def loading():
    return any(thread.name == "pegboard-loading" for thread in threading.enumerate())

async def thinks(request):
    modules["asked"] = set(sys.modules)
    while loading() or not all(name in sys.modules for name in LOADED):
        await asyncio.sleep(0.01)
    modules["called"] = set(sys.modules)
    for event in calls(call("bash", '{"command": "true"}')):
        yield event

async def answers(request):
    modules["answered"] = set(sys.modules)
    for event in text("done"):
        yield event

async def main(folder, model):
    async with opened(folder, Played(*model), builtins=True) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

def own(names):
    return sorted(name for name in names if name.startswith(("pegboard", "pydantic")))
"""
THINKS = """
asyncio.run(main(Path(sys.argv[1]), (thinks, answers)))
early = [name for name in LOADED if name in modules["asked"]]
print(json.dumps([early, own(modules["answered"] - modules["called"])]))
print("pydantic" in sys.modules)
"""
ANSWERS_AT_ONCE = """
asyncio.run(main(Path(sys.argv[1]), (answers,)))
print(json.dumps(["pydantic" in sys.modules]))
"""


def printed(program: str, folder: Path) -> str:
    command = [sys.executable, "-c", PROGRAM + program, str(folder)]
    tests = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tests)
    return done.stdout.strip()


def test_a_first_call_imports_nothing_that_could_be_loaded_before(tmp_path: Path) -> None:
    assert printed(THINKS, tmp_path) == "[[], []]\nFalse"


def test_a_run_without_a_call_loads_nothing_for_one(tmp_path: Path) -> None:
    assert printed(ANSWERS_AT_ONCE, tmp_path) == "[false]"
