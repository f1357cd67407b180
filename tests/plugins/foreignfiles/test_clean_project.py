"""A project without files of other agents pays nothing for those that have some."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

MOST_OF_THE_PLUGIN = 4
PROGRAM = """
import asyncio, collections, json, os, sys
from pathlib import Path
from support.models.model_server import ModelServer, say

project, home, off = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "off"
words = (".claude", ".cursor", ".github", ".windsurfrules", "GEMINI.md", "CLAUDE", ".venv", "venv",
    ".mcp.json", ".codex", ".gemini", "rules")
opened, looked, bodies = [], collections.Counter(), []

def is_foreign(path):
    inside = str(path).startswith((str(project), str(home)))
    return inside and any(word in Path(str(path)).parts for word in words) or "CLAUDE" in str(path)

def audit(event, args):
    if event in ("open", "os.listdir", "os.scandir") and args and is_foreign(args[0]) and (
        os.path.lexists(args[0])
    ):
        opened.append(str(args[0]))

def counting(function):
    def counted(path, *args, **kwargs):
        if is_foreign(path):
            looked[str(path)] += 1
        return function(path, *args, **kwargs)
    return counted

def script(body):
    bodies.append(len(json.dumps([body.get("messages"), body.get("tools"), body.get("input")])))
    return say("Hi.")

async def main():
    from pegboard import App, AppOptions, Prompt
    async with ModelServer(script) as server:
        provider = {"openai": {"options": {"baseURL": server.url, "apiKey": "k"}}}
        config = {"provider": provider}
        if off:
            config["plugins"] = {"foreignfiles": {"enabled": False}}
        places = {f"{name}_dir": home / name for name in ("config", "data", "state", "cache")}
        env = {"HOME": str(home), "PATH": os.environ["PATH"]}
        async with App.open(project, AppOptions(config=config, env=env, **places)) as app:
            session = await app.create_session()
            await app.prompt(session, Prompt("Hello", model="openai/scripted"))

os.stat = counting(os.stat)
sys.addaudithook(audit)
asyncio.run(main())
names = sorted(name for name in sys.modules if name.startswith("pegboard_plugins.foreignfiles."))
print(json.dumps({"opened": opened, "looked": sum(looked.values()), "bytes": bodies[0],
    "modules": names}))
"""
MOST_LOOKS = 41
"""Calls of `stat` for names that other agents use, in an opening and one turn."""


def measured(tmp_path: Path, which: str) -> dict[str, Any]:
    home, project = tmp_path / which / "home", tmp_path / "project"
    home.mkdir(parents=True)
    project.mkdir(exist_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    env["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(project), str(home), which],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_project_without_such_files_opens_none_and_sends_no_byte_more(tmp_path: Path) -> None:
    on, off = measured(tmp_path, "on"), measured(tmp_path, "off")

    assert on["opened"] == []
    assert on["modules"] == []
    assert on["bytes"] == off["bytes"]
    assert on["looked"] <= min(MOST_LOOKS, off["looked"] + MOST_OF_THE_PLUGIN)
