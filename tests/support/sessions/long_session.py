"""A session of some thirty steps with all that a request may carry, as its model sees it."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard import App, AppOptions, Prompt
from pegboard.schema.part import FileInput
from support.models import model_server as ms
from support.models.model_server import ModelServer
from support.tools.worktrees import git

STEPS = 12
"""Of a turn; the prompts that come later begin a turn anew."""
Body = Mapping[str, Any]


def options(folder: Path, url: str) -> AppOptions:
    """An App with all built-in plugins and a model behind HTTP."""
    provider = {
        "options": {"baseURL": url, "apiKey": "key"},
        "models": {"model": {"limit": {"context": 100_000, "output": 4_000}}},
    }
    folders: dict[str, Any] = {
        f"{name}_dir": folder / name for name in ("config", "data", "state", "cache")
    }
    return AppOptions(
        config={"model": "fake/model", "provider": {"fake": provider}},
        installed=False,
        trust=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)},
        **folders,
    )


def project_in(folder: Path) -> Path:
    """A repository with instructions, and others in a folder."""
    project = folder / "project"
    (project / "sub").mkdir(parents=True)
    (project / "AGENTS.md").write_text("Be brief.\n")
    (project / "sub" / "AGENTS.md").write_text("Use tabs.\n")
    (project / "sub" / "b.txt").write_text("".join(f"line {n}\n" for n in range(400)))
    (project / "a.txt").write_text("one\ntwo\n")
    git(project, "init", "-q")
    return project


def encoded(body: Body) -> list[bytes]:
    """The messages of a request as they were sent, but for blanks."""
    return [json.dumps(message).encode() for message in body["messages"]]


def asked(server: ModelServer) -> list[Body]:
    """The requests of turns; a title's offers no tools."""
    return [body for body in server.requests if body.get("tools")]


def kept_bytes(before: Body, after: Body) -> tuple[int, int]:
    """How many bytes of a request a cache of the one before has, and how many there are."""
    texts = [json.dumps([body["tools"], body["messages"]]).encode() for body in (before, after)]
    pairs = enumerate(zip(*texts, strict=False))
    kept = next((place for place, (old, new) in pairs if old != new), len(texts[0]))
    return kept, len(texts[1])


def _steps() -> list[Any]:
    """What the model does: a list, then looking, running, changing, and failing, in turns."""

    def todos(state: str) -> Mapping[str, Any]:
        names = ("look", "change", "check")
        return {
            "todos": [{"id": n, "content": n, "status": state, "priority": "high"} for n in names]
        }

    kinds: list[tuple[str, Mapping[str, Any]]] = [
        ("todowrite", todos("pending")),
        ("read", {"filePath": "a.txt"}),
        ("read", {"filePath": "sub/b.txt"}),
        ("bash", {"command": "seq 2000", "description": "counts"}),
        ("write", {"filePath": "new.txt", "content": "x\n" * 50}),
        ("grep", {"pattern": "line 1"}),
        ("edit", {"filePath": "a.txt", "oldString": "nowhere", "newString": "x"}),
        ("nothing", {}),
        ("todowrite", todos("completed")),
        ("glob", {"pattern": "**/*"}),
    ]
    return [ms.call(*kinds[n % len(kinds)], call_id=f"c{n}") for n in range(STEPS - 1)]


async def requests_of_thirty_steps(folder: Path) -> list[Body]:
    """The requests of a turn with a prompt meanwhile, and of one with a file after a new start."""
    project = project_in(folder)
    script = ms.by_step(*_steps(), ms.say("Done."))
    async with ModelServer(script) as server:
        async with App.open(project, options(folder, server.url)) as app:
            session = (await app.create_session()).id
            turn = asyncio.create_task(app.prompt(session, "go"))
            async with asyncio.timeout(60):
                while len(asked(server)) < STEPS // 2:  # noqa: ASYNC110 - a server tells it
                    await asyncio.sleep(0.01)
            await app.prompt(session, "and faster")
            await turn
        async with App.open(project, options(folder, server.url)) as app:
            url = (project / "a.txt").as_uri()
            file = FileInput(mime="text/plain", url=url)
            await app.prompt(session, Prompt("after a new start", parts=(file,)))
        return asked(server)
