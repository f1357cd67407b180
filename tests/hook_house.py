"""A home and a project with hook files of other agents, and turns of a scripted model in it."""

import json
import os
from pathlib import Path
from typing import Any

from pegboard import App, AppOptions
from pegboard.schema.message import Turn
from pegboard.schema.part import Completed, Failed, ToolPart

Json = dict[str, Any]
FOLDERS = ("config", "data", "state", "cache")
SHELL = {"tool": "bash", "input": {"command": "echo ran > ran.txt", "description": "Try it"}}
WRITE = {"tool": "write", "input": {"filePath": "made.txt", "content": "text\n"}}
CLAUDE, CODEX, GEMINI = ".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json"


class House:
    """A user's home, and a project in it; `run` takes one turn of a scripted model."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
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
        """Return a command that prints something, and notes what it was given."""
        text = answer if isinstance(answer, str) else json.dumps(answer)
        (self.home / "answer").write_text(text)
        return f"cat > {self.home}/given.json; cat {self.home}/answer; exit {code}"

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
            await app.prompt(session, prompt)
            self.turns = await app.turns(session.id)
        return self.turns[-1]

    @property
    def ended(self) -> Completed | Failed:
        """How the first call ended."""
        parts = [part for turn in self.turns for part in turn.parts if isinstance(part, ToolPart)]
        state = parts[0].state
        assert isinstance(state, Completed | Failed)
        return state

    @property
    def ran(self) -> bool:
        return (self.project / "ran.txt").exists()


def own(event: str, **facts: object) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event, **facts}}


def decided(word: str) -> Json:
    return own("PreToolUse", permissionDecision=word, permissionDecisionReason="no")
