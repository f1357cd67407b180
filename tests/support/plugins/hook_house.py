"""A home and a project with hook files of other agents, and turns of a scripted model in it."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pegboard import App, AppOptions
from pegboard.schema.event import SessionWarned
from pegboard.schema.message import Turn
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.session import Reply
from pegboard.testing import EventRecorder

Json = dict[str, Any]
WITHIN_S = 30
"""The longest wait for anything that is to happen."""
HOOKS = ("hooks", "trust")
FOLDERS = ("config", "data", "state", "cache")
SHELL = {"tool": "bash", "input": {"command": "echo ran > ran.txt", "description": "Try it"}}
WRITE = {"tool": "write", "input": {"filePath": "made.txt", "content": "text\n"}}
CLAUDE, CODEX, GEMINI = ".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json"


class House:
    """A user's home, and a project in it; `run` takes one turn of a scripted model.

    `warnings` are those that the user saw in the last turn.
    """

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.trap = root / "trap"
        self.warnings: list[str] = []
        for folder in (self.home, self.project):
            folder.mkdir()
        self.folders = {name: root / name / "pegboard" for name in FOLDERS}
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        self.env |= {f"XDG_{name.upper()}_HOME": str(root / name) for name in FOLDERS}

    def options(self, **facts: Any) -> AppOptions:
        """Return options that keep everything in this place."""
        folders: dict[str, Any] = {f"{name}_dir": path for name, path in self.folders.items()}
        return AppOptions(env=self.env, **folders, **facts)

    def hook(
        self, event: str, command: str, *, at: str = ".claude/settings.json", **facts: Any
    ) -> Path:
        """Write a hook file of the user's with one hook."""
        return self.write(self.home / at, event, command, **facts)

    def write(self, file: Path, event: str, command: str, **facts: Any) -> Path:
        matcher = facts.pop("matcher", None)
        group = {"hooks": [{"type": "command", "command": command, **facts}]}
        if matcher is not None:
            group["matcher"] = matcher
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"hooks": {event: [group]}}))
        return file

    def saying(self, answer: Json | str, *, code: int = 0) -> str:
        """Return a command that prints something, and notes what it was given.

        A text behind `>&2` goes to stderr.
        """
        text = answer if isinstance(answer, str) else json.dumps(answer)
        target = ">&2" if text.startswith(">&2") else ""
        (self.home / "answer").write_text(text.removeprefix(">&2").strip())
        return f"cat > {self.home}/given.json; cat {self.home}/answer {target}; exit {code}"

    @property
    def given(self) -> Json:
        """What the last hook was given."""
        found: Json = json.loads((self.home / "given.json").read_text())
        return found

    async def run(self, *calls: Json, prompt: str = "Do it", **options: Any) -> Turn:
        steps = [{"calls": [each]} for each in calls]
        transcript = self.home / "model.json"
        transcript.write_text(json.dumps({"scripts": [{"steps": [*steps, {"text": "Done."}]}]}))
        config = {
            "model": f"scripted/{transcript}",
            "permission": {"*": "allow"},
            **options.pop("config", {}),
        }
        async with App.open(self.project, self.options(config=config, **options)) as app:
            session = await app.create_session()
            async with EventRecorder(app) as recorder:
                await app.prompt(session, prompt)
            self.turns = await app.list_turns(session.id)
        self.warnings = [each.message for each in recorder.of(SessionWarned)]
        return self.turns[-1]

    def scripted(self, scripts: Sequence[Json]) -> str:
        """Return the model that plays these scripts."""
        transcript = self.home / "model.json"
        transcript.write_text(json.dumps({"scripts": list(scripts)}))
        return f"scripted/{transcript}"

    @asynccontextmanager
    async def played(self, scripts: Sequence[Json], **facts: Any) -> AsyncIterator[App]:
        """Open an App whose model plays these scripts, and which allows everything."""
        config = {"model": self.scripted(scripts), "permission": {"*": "allow"}}
        config |= facts.pop("config", {})
        async with App.open(self.project, self.options(config=config, **facts)) as app:
            yield app

    async def run_asked(
        self, config: Json, reply: Reply = "once", *, then: Callable[[], object] = lambda: True
    ) -> None:
        """Take a turn in which the user is asked once, and answers when a hook has noticed.

        The App stays open until `then` holds.
        """
        transcript = self.home / "model.json"
        steps = [{"calls": [SHELL]}, {"text": "Done."}]
        transcript.write_text(json.dumps({"scripts": [{"steps": steps}]}))
        config = {"model": f"scripted/{transcript}", **config}
        async with App.open(self.project, self.options(config=config, interactive=True)) as app:
            session = await app.create_session()
            turn = asyncio.ensure_future(app.prompt(session, "Do it"))
            await becomes(lambda: app.permissions.pending() and (self.home / "given.json").exists())
            (asked,) = app.permissions.pending()
            await app.answer_permission(asked.id, reply)
            await turn
            await becomes(then)

    @property
    def ended(self) -> Completed | Failed:
        """How the first call ended."""
        parts = [part for turn in self.turns for part in turn.parts if isinstance(part, ToolPart)]
        state = parts[0].state
        assert isinstance(state, Completed | Failed)
        return state

    def trust(self, *words: str) -> str:
        """Trust the hooks of the project by the command, and return what it prints."""
        return self.command(*(words or HOOKS), "--yes")

    def lock(self) -> None:
        """Lock the project as it is, and have each run go by the lock file."""
        lock = str(self.home / "house.lock")
        self.command("trust", "lock", lock)
        self.env["PEGBOARD_TRUST_LOCK"] = lock

    def command(self, *words: str) -> str:
        """Run a command of Pegboard, which succeeds, and return what it prints."""
        code = "from pegboard.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, "-C", str(self.project), *words],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def sprung(self) -> bool:
        """Whether the file that traps make is there."""
        return self.trap.exists()

    @property
    def ran(self) -> bool:
        return (self.project / "ran.txt").exists()


def own(event: str, **facts: object) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event, **facts}}


def decided(word: str) -> Json:
    return own("PreToolUse", permissionDecision=word, permissionDecisionReason="no")


async def becomes(condition: Callable[[], object]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
