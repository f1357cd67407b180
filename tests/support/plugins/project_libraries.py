"""A project with an environment of libraries that bring skills."""

import base64
import hashlib
import json
from pathlib import Path

from pegboard import SessionView
from pegboard.providers import ToolDefinition
from pegboard_plugins.skill import FILE, tool_definition
from support.sessions.session_views import view

SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
PYPROJECT = "[project]\ndependencies = [\"Tea_Shop[hot]>=1; python_version > '3'\"]\n"

TOOL = ToolDefinition(name="skill", description="Read it.", parameters={}, permission="skill")


def digest(content: bytes) -> str:
    found = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return found.rstrip(b"=").decode()


class ProjectLibraries:
    """A project with an environment, into which libraries are put as wheels put them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.site = root / ".venv" / "lib" / "python3.12" / "site-packages"
        self.site.mkdir(parents=True)
        (root / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
        (root / "pyproject.toml").write_text(PYPROJECT)

    def install(
        self,
        library: str = "tea_shop",
        *,
        version: str = "1.0",
        name: str = "tea",
        description: str = "Makes tea.",
        entry: str = "",
    ) -> Path:
        path = self.site / library / ".agents" / "skills" / name / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"---\nname: {name}\ndescription: {description}\n---\nBoil {version}.\n"
        path.write_text(text)
        for old in self.site.glob(f"{library}-*.dist-info"):
            (old / "RECORD").unlink()
            old.rmdir()
        info = self.site / f"{library}-{version}.dist-info"
        info.mkdir()
        inner = path.relative_to(self.site).as_posix()
        line = entry or f"{inner},sha256={digest(text.encode())},{len(text)}"
        (info / "RECORD").write_text(f"{library}/__init__.py,,\n{line}\n")
        return path

    def plugin(self, name: str = "tea-kit", **files: str) -> Path:
        """Install a library with an Agent Plugin of these skills, and return its folder."""
        stem = f"{name.replace('-', '_')}-1.0"
        root, info = self.site / f"{stem}.agent-plugin", self.site / f"{stem}.dist-info"
        content = {
            "plugin.json": json.dumps({"$schema": SCHEMA, "name": name}),
            **{f"skills/{skill}/{FILE}": text for skill, text in files.items()},
        }
        info.mkdir()
        marker = json.dumps({"root": root.name, "files": list(content)})
        lines = [self._put(f"{info.name}/agent_plugins.json", marker)]
        lines += [self._put(f"{root.name}/{each}", text) for each, text in content.items()]
        (info / "RECORD").write_text("".join(lines))
        dependencies = json.dumps(["tea_shop", name])
        (self.root / "pyproject.toml").write_text(f"[project]\ndependencies = {dependencies}\n")
        return root

    def _put(self, name: str, text: str) -> str:
        """Write a file below site-packages, and return its line of a RECORD."""
        path = self.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return f"{name},sha256={digest(text.encode())},{len(text)}\n"

    async def lines(self, session: SessionView | None = None) -> list[str]:
        """Return the lines of skills in a request."""
        found = await tool_definition(session or view(self.root), TOOL)
        return found.description.splitlines()[2:] if found else []
