"""MCP servers that are configured in files of other programs, such as `.mcp.json`."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard import Host, Workspace
from pegboard_mcp.configuration import Source, Table

PROJECT_FILE = ".mcp.json"
CLAUDE_FILE = ".claude.json"
_KEY = "mcpServers"


def project_files(workspace: Workspace) -> tuple[Path, ...]:
    """Return the project files that configure MCP servers, from the outermost folder inwards."""
    folders = dict.fromkeys((workspace.worktree, workspace.directory))
    return tuple(path for each in folders if (path := each / PROJECT_FILE).is_file())


def project_tables(host: Host) -> list[tuple[Source, Table]]:
    """Return the server tables of the project files that the user trusts."""
    files = host.trust.files
    trusted = [
        path
        for path in project_files(host.workspace)
        if path in files and path not in host.untrusted
    ]
    return [(_source(path, is_project=True), _servers(_parsed(files[path]))) for path in trusted]


def claude_tables(home: Path, workspace: Workspace) -> list[tuple[Source, Table]]:
    """Return the server tables in Claude Code's settings, for all projects and this project."""
    path = home / CLAUDE_FILE
    try:
        settings = _parsed(path.read_bytes())
    except OSError:
        return []
    projects = settings.get("projects")
    mine = projects.get(str(workspace.worktree)) if isinstance(projects, Mapping) else None
    return [(_source(path), _servers(each)) for each in (settings, mine)]


def _source(path: Path, *, is_project: bool = False) -> Source:
    return Source(file=str(path), is_project=is_project, env=os.environ)


def _parsed(content: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


def _servers(value: object) -> Table:
    found = value.get(_KEY) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}
