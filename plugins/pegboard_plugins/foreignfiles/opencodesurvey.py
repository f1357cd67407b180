"""The survey of OpenCode's files, of the user and a project: what Pegboard makes of each."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pegboard.schema.config import AgentConfig
from pegboard_plugins.foreignfiles.findings import (
    NEEDS_MCP,
    BrokenFile,
    ForeignFinding,
    Found,
    Home,
    State,
    servers_of,
)
from pegboard_plugins.foreignfiles.othersurveys import command_of, table_of, text_of
from pegboard_plugins.shared.frontend import front_matter

_OPENCODE_REASONS = {
    "plugin": "plugins of npm cannot run here; some have a server for MCP as well",
    "keybinds": "the chat has its own keys",
    "theme": "the chat has its own colours",
    "share": "sessions are shared with `pegboard session export`",
    "autoupdate": "pip updates Pegboard",
    "watcher": "files are looked at when they are needed",
    "experimental": "settings on trial are not taken over",
    "skills": "skills are found in the folders of skills",
}


_UNREAD = {
    "plugin": "it is not Python: `pegboard plugins new` begins one with hooks of Pegboard",
    "tool": "it is not Python: a function in `.pegboard/tool/NAME.py` is a tool",
    "mode": "a file in `.opencode/agent` with `mode: primary` is the same",
    "theme": _OPENCODE_REASONS["theme"],
}
"""Folders whose files have no effect, and why."""


def opencode_findings(home: Home) -> Found:
    """Return what becomes of OpenCode's files, the user's first; Pegboard reads most of them."""
    found: Found = []
    top = home.home / ".config" / "opencode"
    for folder, is_project in ((top, False), *((each, True) for each in home.projects)):
        inner = folder if not is_project else folder / ".opencode"
        for kind in ("agent", "agents", "command", "commands"):
            for path in sorted((inner / kind).rglob("*.md")):
                name = path.relative_to(inner / kind).with_suffix("").as_posix()
                what = f"{kind.rstrip('s')} {name}"
                if is_project:
                    found.append(home.row(what, path, what, "trust"))
                elif kind.startswith("command"):
                    found.append(command_of(home, path, name, is_project=False))
                else:
                    found.append(_agent(home, path, name))
        found += _documents(home, folder, inner)
        found += _code(home, inner)
        for name in ("opencode.json", "opencode.jsonc"):
            for path in dict.fromkeys((folder / name, inner / name)):
                table = table_of(home, path, found)
                found += _opencode_settings(home, path, table, is_project=is_project)
    return found


def _documents(home: Home, folder: Path, inner: Path) -> Iterator[ForeignFinding]:
    """Yield findings about instructions and skills, which Pegboard reads in place."""
    if (folder / "AGENTS.md").is_file():
        yield home.row("instructions", folder / "AGENTS.md", "instructions")
    for kind in ("skill", "skills"):
        for path in sorted((inner / kind).rglob("SKILL.md")):
            yield home.row(f"skill {path.parent.name}", path, "skill")


def _code(home: Home, inner: Path) -> Iterator[ForeignFinding]:
    """Yield findings about code files that Pegboard cannot run."""
    for kind, reason in _UNREAD.items():
        for folder in (inner / kind, inner / f"{kind}s"):
            for path in sorted(folder.glob("*")):
                if path.is_file() and path.suffix != ".py":
                    yield home.row(f"{kind} {path.stem}", path, None, "cannot", reason)


def _agent(home: Home, path: Path, name: str) -> ForeignFinding | BrokenFile:
    """Return what becomes of an agent; an import writes it if all of its settings are known."""
    text, why = text_of(path)
    if why:
        return BrokenFile(file=home.short(path), reason=why)
    unknown = set(front_matter(text)[0] or {}) - {"name", *AgentConfig.__struct_fields__}
    if unknown:
        reason = f"its settings {', '.join(sorted(unknown))} are none of an agent here"
        return home.row(f"agent {name}", path, None, "cannot", reason)
    return ForeignFinding(
        found=f"agent {name}",
        file=home.short(path),
        becomes=f"agent {name}",
        state="import",
        documents={f"agent/{name}.md": text},
    )


def _opencode_settings(
    home: Home, path: Path, table: Mapping[str, Any], *, is_project: bool
) -> Iterator[ForeignFinding | BrokenFile]:
    for key, value in table.items():
        if key == "$schema":
            continue
        if key in _OPENCODE_REASONS:
            reason = _OPENCODE_REASONS[key]
            yield home.row(key, path, None, state="cannot", reason=reason)
        elif key == "mcp" and isinstance(value, Mapping) and is_project:
            yield from (_server(home, path, str(name)) for name in value)
        elif is_project:
            state: State = "acts" if key == "permission" else "trust"
            yield home.row(key, path, key, state=state)
        elif key == "permission" and isinstance(value, Mapping | str):
            reason = f"to take its rules over, copy them to {'pegboard.toml'}"
            yield home.row(key, path, None, state="cannot", reason=reason)
        elif key in {"model", "small_model"} and isinstance(value, str):
            yield ForeignFinding(
                found=f"{key} {value}",
                file=home.short(path),
                becomes=f"{key} = {json.dumps(value)}",
                state="import",
                settings=(((key,), value),),
            )
        elif key == "mcp" and isinstance(value, Mapping):
            yield from servers_of(home, path, _opencode_servers(value), is_project=False)
        else:
            reason = f"copy {home.short(path)} to Pegboard's settings folder, which reads the form"
            yield home.row(key, path, None, state="cannot", reason=reason)


def _server(home: Home, path: Path, name: str) -> ForeignFinding:
    """Return the finding about a project's MCP server, which needs trust."""
    what = f"MCP server {name}"
    if home.has_mcp:
        return home.row(what, path, f"mcp.{name}", "trust")
    return home.row(what, path, None, "cannot", NEEDS_MCP)


def _opencode_servers(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the MCP servers, each command split into a program and its arguments."""
    found = {}
    for name, entry in table.items():
        command = entry.get("command") if isinstance(entry, Mapping) else None
        if isinstance(command, list) and command:
            found[name] = {**entry, "command": str(command[0]), "args": command[1:]}
        else:
            found[name] = entry
    return found
