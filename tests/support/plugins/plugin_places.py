"""Where plugins are put for a test: a project, a user's folder, a site-packages."""

from pathlib import Path
from typing import Any

from pegboard import paths
from pegboard.loading.candidates import Sources
from pegboard.loading.register import Register
from pegboard.schema.config import Config
from pegboard.schema.event import PluginFailed
from pegboard.trust.decisions import TrustStore


class Places:
    """Where plugins are put for a test, and what loads them."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path
        self.project = tmp_path / "project"
        self.user = tmp_path / "user"
        self.site = tmp_path / "site"
        self.project.mkdir()
        self.failures: list[PluginFailed] = []
        self.opened: list[Register] = []

    def write(self, name: str, source: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    def install(self, name: str, source: str, *, distribution: str = "") -> None:
        """Install a module as a distribution with itself as its plugin."""
        folder = (distribution or name).replace("-", "_")
        self.write(f"site/{name}_module.py", source)
        self.write(
            f"site/{folder}-2.5.dist-info/entry_points.txt",
            f"[pegboard]\n{name} = {name}_module\n",
        )

    async def load(self, **facts: Any) -> Register:
        trusted = facts.pop("trusted", True)
        config = facts.pop("config", Config())
        decision = TrustStore(self.root / "trust.json").decide(
            directory=self.project, worktree=self.project, answer=trusted
        )
        given: dict[str, Any] = {"env": {}, "builtins": False, "decision": decision} | facts
        sources = Sources(
            directory=self.project,
            places=paths.UserFolders.of({}, config=self.user),
            config=config,
            on_failure=self.failures.append,
            **given,
        )
        register = Register(sources)
        await register.load()
        self.opened.append(register)
        return register
