"""The survey of Claude Code's files, of the user and a project: what Pegboard makes of each."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pegboard.unstable import read_bounded
from pegboard_plugins.foreignfiles.claudefolder import (
    FOLDER,
    PLAN,
    SETTINGS,
    Places,
    default_mode,
    definition_files,
    read_definition,
    read_settings,
    settings_rules,
)
from pegboard_plugins.foreignfiles.clauderules import ForeignRule
from pegboard_plugins.foreignfiles.findings import (
    NEEDS_MCP,
    BrokenFile,
    ForeignFinding,
    Found,
    Home,
    hooks_of,
    keys_of,
)
from pegboard_plugins.instructions.imports import imported_names
from pegboard_plugins.shared.frontend import counting_note

_MANAGED = Path("/etc/claude-code/managed-settings.json")
_COVERED = frozenset({"permissions", "hooks", "model", "$schema", "disableAllHooks"})
_REASONS = {
    "additionalDirectories": "`permission.external_directory` in pegboard.toml opens folders",
    "apiKeyHelper": "`provider.anthropic.key_command` in pegboard.toml names a program for keys",
    "enabledPlugins": "`pegboard plugins bundle add` installs a plugin from its folder or URL",
    "env": "variables are yours to set; a file of settings may hold secrets",
    "outputStyle": "an agent's prompt says how answers are written",
    "sandbox": "`sandbox` in pegboard.toml encloses what tools start",
    "statusLine": "the chat has its own last line",
}
_OF_PERMISSIONS = {
    "defaultMode": "`--mode` chooses what runs before you are asked; files of settings do not",
    "additionalDirectories": _REASONS["additionalDirectories"],
    "disableBypassPermissionsMode": "there is no such mode to switch off",
}
_DOCUMENTS = ("CLAUDE.md", f"{FOLDER}/CLAUDE.md", "CLAUDE.local.md", f"{FOLDER}/rules")
_TO_ALLOW = ((("plugins", "foreignfiles", "options", "permissions"), "all"),)


def claude_findings(home: Home) -> Found:
    """Return the findings about Claude Code's files, the user's first."""
    places = Places(home=home.home, workspace=home.workspace, projects=home.projects)
    found: Found = []
    for folder in (home.home, *home.projects):
        is_project = folder != home.home
        names = _DOCUMENTS if is_project else _DOCUMENTS[1:2] + _DOCUMENTS[3:]
        found += _documents(home, folder, names)
        found += _definitions(home, folder, is_project=is_project)
        found += _skills(home, folder)
        for name in SETTINGS if is_project else SETTINGS[:1]:
            found += _settings(home, places, folder / FOLDER / name, is_project=is_project)
    found += _servers(home)
    if _MANAGED.exists():
        reason = "settings of an administrator are not read"
        found.append(_row("managed settings", str(_MANAGED), None, "cannot", reason=reason))
    return found


def _row(found: str, file: str, becomes: str | None, state: Any, **facts: Any) -> ForeignFinding:  # noqa: ANN401 - checked by the class
    return ForeignFinding(found=found, file=file, becomes=becomes, state=state, **facts)


def _documents(home: Home, folder: Path, names: tuple[str, ...]) -> Iterator[ForeignFinding]:
    for path in (folder / name for name in names):
        if path.exists():
            what = "rules" if path.is_dir() else "instructions"
            yield _row(what, home.short(path), "instructions", "acts")
            if path.is_file() and folder != home.home:
                yield from _imports_elsewhere(home, path)


def _imports_elsewhere(home: Home, path: Path) -> Iterator[ForeignFinding]:
    """Yield findings about imports in a project's file that lead out of the project."""
    root = home.workspace.worktree
    text = read_bounded(path)[0].decode("utf-8-sig", "replace")
    for name in dict.fromkeys(each.rstrip(".,;:!?") for each in imported_names(text)):
        target = home.home / name[2:] if name.startswith("~/") else path.parent / name
        if target.is_file() and not target.resolve().is_relative_to(root):
            reason = "a project imports only its own files; `instructions` can name others"
            yield _row(f"import @{name}", home.short(path), None, "cannot", reason=reason)


def _definitions(home: Home, folder: Path, *, is_project: bool) -> Found:
    found: Found = []
    within = home.workspace.worktree if is_project else None
    for file in definition_files(folder / FOLDER, within=within):
        content, why = read_bounded(file.path)
        read = read_definition(file, content, why)
        kind = file.kind[:-1]
        made = [*(each.name for each in read.agents), *(each.name for each in read.commands)]
        if not made:
            found.append(BrokenFile(file=home.short(file.path), reason="; ".join(read.notes)))
            continue
        notes = "; ".join(read.notes)
        becomes = f"{kind} {made[0]}"
        state = "trust" if is_project else "acts"
        facts = {"is_project": is_project, "reason": counting_note(content) or None}
        row = _row(becomes, home.short(file.path), becomes, state, **facts)
        found.append(row)
        model, others = _parted(notes)
        if model:
            part, becomes = f"{kind} {made[0]}: {model}", "the session's model"
            found.append(_row(part, home.short(file.path), becomes, state, is_project=is_project))
        if others:
            part = f"{kind} {made[0]}: {others}"
            reason = "Pegboard has nothing like it; the rest counts"
            found.append(_row(part, home.short(file.path), None, "cannot", reason=reason))
    return found


def _parted(notes: str) -> tuple[str, str]:
    """Split the notes about an agent or a command: notes about its model, and all others."""
    each = notes.split(", ") if notes else []
    models = [note for note in each if note.startswith("model ")]
    return ", ".join(models), ", ".join(note for note in each if note not in models)


def _skills(home: Home, folder: Path) -> Iterator[ForeignFinding]:
    for path in sorted((folder / FOLDER / "skills").glob("*/SKILL.md")):
        content = read_bounded(path)[0]
        takes_arguments = b"$ARGUMENTS" in content or b"\nargument" in content
        facts = {"reason": counting_note(content) or None if takes_arguments else None}
        yield _row(f"skill {path.parent.name}", home.short(path), "skill", "acts", **facts)


def _settings(home: Home, places: Places, path: Path, *, is_project: bool) -> Found:
    if not path.is_file():
        return []
    table, problem = read_settings(path)
    if problem:
        return [BrokenFile(file=home.short(path), reason=problem)]
    found: Found = []
    rules, _ = settings_rules(path, places, is_project=is_project)
    found += [_rule(home, each) for each in rules]
    permissions = table.get("permissions")
    if isinstance(permissions, Mapping):
        covered = frozenset({"allow", "ask", "deny"})
        if (mode := default_mode(path)) in {PLAN, "default"}:
            covered |= {"defaultMode"}
            what, becomes = f"defaultMode {mode}", "the agent that a session starts with"
            found.append(_row(what, home.short(path), becomes, "acts", is_project=is_project))
        found += keys_of(home, path, permissions, _OF_PERMISSIONS, covered)
    found += hooks_of(home, "claude", path, is_project=is_project)
    if isinstance(model := table.get("model"), str):
        found.append(_model(home, path, model, is_project=is_project))
    found += keys_of(home, path, table, _REASONS, _COVERED)
    return found


def _model(home: Home, path: Path, model: str, *, is_project: bool) -> ForeignFinding:
    if "-" not in model:
        reason = "which model this name means changes; `pegboard config set model` names one"
        return _row(f"model {model}", home.short(path), None, "cannot", reason=reason)
    name = model if "/" in model else f"anthropic/{model}"
    return _row(
        f"model {model}",
        home.short(path),
        f'model = "{name}"',
        "import",
        is_project=is_project,
        settings=((("model",), name),),
    )


def _rule(home: Home, rule: ForeignRule) -> ForeignFinding:
    becomes = ", ".join(f'{each.permission}."{each.pattern}"' for each in rule.rules[:2])
    what, file = f"{rule.action} {rule.text}", home.short(rule.file)
    if not rule.rules or rule.is_weaker:
        return _row(what, file, becomes or None, "cannot", reason=rule.reason)
    if rule.action != "allow":
        return _row(what, file, f"{rule.action} {becomes}", "acts", is_project=rule.is_project)
    if rule.is_project:
        lines = "; ".join(f'permission.{each.permission}."{each.pattern}"' for each in rule.rules)
        reason = f'a project allows nothing; to allow it yourself: {lines} = "allow"'
        return _row(what, file, None, "cannot", reason=reason, is_project=True)
    return _row(what, file, f"allow {becomes}", "import", settings=_TO_ALLOW)


def _servers(home: Home) -> Iterator[ForeignFinding]:
    needs = None if home.has_mcp else NEEDS_MCP
    for folder in home.projects:
        path = folder / ".mcp.json"
        if path.is_file():
            state, becomes = ("trust", "mcp servers") if home.has_mcp else ("cannot", None)
            facts = {"is_project": True, "reason": needs}
            yield _row("MCP servers", home.short(path), becomes, state, **facts)
    path = home.home / ".claude.json"
    table = read_settings(path)[0] if path.is_file() else {}
    projects = table.get("projects")
    mine = projects.get(str(home.workspace.worktree)) if isinstance(projects, Mapping) else None
    if table.get("mcpServers") or (isinstance(mine, Mapping) and mine.get("mcpServers")):
        setting = ((("plugins", "mcp", "options", "claude"), True),)
        becomes = "mcp servers"
        if home.has_mcp:
            yield _row("MCP servers", home.short(path), becomes, "import", settings=setting)
        else:
            yield _row("MCP servers", home.short(path), None, "cannot", reason=needs)
