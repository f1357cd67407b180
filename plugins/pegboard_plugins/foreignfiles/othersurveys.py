"""The survey of Codex's and Gemini CLI's files, of the user and a project."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pegboard.errors import ConfigError
from pegboard.unstable import json_config, read_bounded
from pegboard_plugins.foreignfiles.findings import (
    BrokenFile,
    ForeignFinding,
    Found,
    Home,
    hooks_of,
    keys_of,
    servers_of,
)
from pegboard_plugins.shared.frontend import front_matter

_CODEX_PROVIDER = "openai"
_SANDBOXES = {"read-only": "strict", "workspace-write": "workspace"}
_CODEX_REASONS = {
    "approval_policy": "rules in `permission` say what is asked; `--auto` asks nothing",
    "model_provider": "a provider of your own is a table `provider.NAME` in pegboard.toml",
    "model_providers": "a provider of your own is a table `provider.NAME` in pegboard.toml",
    "model_reasoning_effort": "`--variant` chooses how much a model thinks",
    "notify": "the hook `event` of a plugin hears of each turn",
    "projects": "trust is given with `pegboard trust allow`",
    "sandbox_workspace_write": "`sandbox_network` and `external_directory` say what is open",
}
_CODEX_KNOWN = frozenset({"model", "mcp_servers", "profiles", "sandbox_mode", "hooks"})
_GEMINI_REASONS = {
    "security": "keys are set with `pegboard auth`, trust with `pegboard trust allow`",
    "selectedAuthType": "keys are set with `pegboard auth`",
    "tools": "`permission` in pegboard.toml says which tools may do what",
    "coreTools": "`permission` in pegboard.toml says which tools may do what",
    "excludeTools": "`permission` in pegboard.toml says which tools may do what",
    "sandbox": "`sandbox` in pegboard.toml encloses what tools start",
    "ui": "the chat has its own settings",
    "theme": "the chat has its own settings",
}
_GEMINI_KNOWN = frozenset({"mcpServers", "hooks", "hooksConfig", "model", "context", "$schema"})


def codex_findings(home: Home) -> Found:
    """Return the findings about files of Codex, the user's first."""
    found: Found = []
    for folder in (home.home, *home.projects):
        is_project = folder != home.home
        top = folder / ".codex"
        if not is_project:
            found += _instructions(home, top / "AGENTS.md")
        found += _codex_prompts(home, top / "prompts", is_project=is_project)
        found += hooks_of(home, "codex", top / "hooks.json", is_project=is_project)
        for path in sorted((top / "skills").glob("*/SKILL.md")):
            reason = f"move it to {home.short(folder / '.agents' / 'skills')}"
            what = f"skill {path.parent.name}"
            found.append(home.row(what, path, None, state="cannot", reason=reason))
        for path in sorted((top / "rules").glob("*.rules")):
            reason = "`permission.bash` in pegboard.toml says which commands run"
            found.append(home.row("rules", path, None, state="cannot", reason=reason))
        table = table_of(home, top / "config.toml", found)
        found += _codex_settings(home, top / "config.toml", table, is_project=is_project)
    return found


def _codex_settings(
    home: Home, path: Path, table: Mapping[str, Any], *, is_project: bool
) -> Iterator[ForeignFinding | BrokenFile]:
    provider = table.get("model_provider", _CODEX_PROVIDER)
    if isinstance(model := table.get("model"), str):
        yield _codex_model(home, path, f"model {model}", provider, model, is_project=is_project)
    if isinstance(mode := table.get("sandbox_mode"), str):
        level = _SANDBOXES.get(mode)
        reason = None if level else "to run without a sandbox, set `sandbox` to off yourself"
        yield ForeignFinding(
            found=f"sandbox_mode {mode}",
            file=home.short(path),
            becomes=f'sandbox = "{level}"' if level else None,
            state="import" if level else "cannot",
            reason=reason,
            is_project=is_project,
            settings=((("sandbox",), level),) if level else (),
        )
    profiles = table.get("profiles")
    for name, entry in profiles.items() if isinstance(profiles, Mapping) else ():
        chosen = entry.get("model") if isinstance(entry, Mapping) else None
        if isinstance(chosen, str):
            found = _codex_model(
                home,
                path,
                f"profile {name}",
                entry.get("model_provider", provider),
                chosen,
                key=("profile", str(name), "model"),
            )
            rest = entry.keys() - {"model", "model_provider"} and found.state == "import"
            reason = "its model; the rest is not taken over" if rest else found.reason
            yield replace(found, reason=reason)
        else:
            reason = "it names no model"
            yield home.row(f"profile {name}", path, None, state="cannot", reason=reason)
    yield from servers_of(home, path, table.get("mcp_servers"), is_project=is_project)
    yield from hooks_of(home, "codex", path, is_project=is_project)
    known = _CODEX_KNOWN | ({"model_provider"} if provider == _CODEX_PROVIDER else frozenset())
    yield from keys_of(home, path, table, _CODEX_REASONS, known)


def _codex_model(  # noqa: PLR0913 - the finding's parts
    home: Home,
    path: Path,
    found: str,
    provider: object,
    model: str,
    *,
    key: tuple[str, ...] = ("model",),
    is_project: bool = False,
) -> ForeignFinding:
    """Return the finding about a model; a provider that only Codex knows cannot be imported."""
    if provider == _CODEX_PROVIDER:
        return _model(home, path, "openai", model, found=found, key=key, is_project=is_project)
    reason = (
        f"model_provider {provider} is a table of Codex: add `provider.{provider}` to"
        f" pegboard.toml, then `pegboard config set {'.'.join(key)} {provider}/{model}`"
    )
    return home.row(found, path, None, "cannot", reason)


def _codex_prompts(
    home: Home, folder: Path, *, is_project: bool
) -> Iterator[ForeignFinding | BrokenFile]:
    for path in sorted(folder.glob("*.md")):
        yield command_of(home, path, path.stem, is_project=is_project)


def gemini_findings(home: Home) -> Found:
    """Return the findings about files of Gemini CLI, the user's first."""
    found: Found = []
    for folder in (home.home, *home.projects):
        is_project = folder != home.home
        top = folder / ".gemini"
        if is_project and (folder / "GEMINI.md").is_file():
            reason = "counts where no AGENTS.md or CLAUDE.md does"
            path = folder / "GEMINI.md"
            found.append(home.row("instructions", path, "instructions", reason=reason))
        if not is_project:
            found += _instructions(home, top / "GEMINI.md")
        commands = top / "commands"
        for path in sorted(commands.rglob("*.toml")):
            name = path.relative_to(commands).with_suffix("").as_posix()
            found.append(command_of(home, path, name, is_project=is_project))
        for path in sorted((top / "extensions").glob("*/gemini-extension.json")):
            reason = "extensions are not taken over"
            what = f"extension {path.parent.name}"
            found.append(home.row(what, path, None, state="cannot", reason=reason))
        path = top / "settings.json"
        found += _gemini_settings(home, path, table_of(home, path, found), is_project=is_project)
    return found


def _gemini_settings(
    home: Home, path: Path, table: Mapping[str, Any], *, is_project: bool
) -> Iterator[ForeignFinding | BrokenFile]:
    model = table.get("model")
    name = model.get("name") if isinstance(model, Mapping) else model
    if isinstance(name, str):
        yield _model(home, path, "gemini", name, is_project=is_project)
    context = table.get("context")
    names = context.get("fileName") if isinstance(context, Mapping) else None
    if given := [names] if isinstance(names, str) else names if isinstance(names, list) else ():
        entries = [str(each) for each in given]
        yield ForeignFinding(
            found="context.fileName",
            file=home.short(path),
            becomes="instructions",
            state="import",
            is_project=is_project,
            settings=((("instructions",), entries),),
        )
    yield from servers_of(home, path, table.get("mcpServers"), is_project=is_project)
    yield from hooks_of(home, "gemini", path, is_project=is_project)
    yield from keys_of(home, path, table, _GEMINI_REASONS, _GEMINI_KNOWN)


def _instructions(home: Home, path: Path) -> Iterator[ForeignFinding]:
    """Yield the finding about the user's instruction file, which an import adds to the settings."""
    if path.is_file():
        yield ForeignFinding(
            found="instructions",
            file=home.short(path),
            becomes=f"instructions = [{json.dumps(str(path))}]",
            state="import",
            settings=((("instructions",), [str(path)]),),
        )


def _model(  # noqa: PLR0913 - the finding's parts
    home: Home,
    path: Path,
    provider: str,
    model: str,
    *,
    found: str = "",
    key: tuple[str, ...] = ("model",),
    is_project: bool,
) -> ForeignFinding:
    name = f"{provider}/{model}"
    return ForeignFinding(
        found=found or f"model {model}",
        file=home.short(path),
        becomes=f'{".".join(key)} = "{name}"',
        state="import",
        is_project=is_project,
        settings=((key, name),),
    )


def command_of(
    home: Home, path: Path, name: str, *, is_project: bool
) -> ForeignFinding | BrokenFile:
    """Return the finding about a slash command's file, or a broken file."""
    text, why = text_of(path)
    description: object = None
    if not why and path.suffix == ".toml":
        text, description, why = _from_gemini(text)
    elif not why:
        settings, text = front_matter(text)
        description = (settings or {}).get("description")
    if why:
        return BrokenFile(file=home.short(path), reason=why)
    front = f"---\ndescription: {json.dumps(description)}\n---\n" if description else ""
    return ForeignFinding(
        found=f"command {name}",
        file=home.short(path),
        becomes=f"command {name}",
        state="import",
        is_project=is_project,
        documents={f"command/{name}.md": f"{front}{text.strip()}\n"},
    )


def _from_gemini(text: str) -> tuple[str, object, str]:
    """Return a Gemini CLI command's text and description, and why it is invalid, or ""."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return "", None, f"is not valid TOML: {error}"
    prompt = table.get("prompt")
    if not isinstance(prompt, str):
        return "", None, "it has no prompt"
    body = prompt.replace("{{args}}", "$ARGUMENTS")
    for mark, sign, end in (("!{", "!`", "`"), ("@{", "@", "")):
        while mark in body:
            before, _, rest = body.partition(mark)
            inner, closed, after = rest.partition("}")
            if not closed:
                break
            body = f"{before}{sign}{inner.strip()}{end}{after}"
    return body, table.get("description"), ""


def text_of(path: Path) -> tuple[str, str]:
    """Return the text of a file; the second value says why it cannot be read, or is ""."""
    content, why = read_bounded(path)
    if why or b"\0" in content:
        return "", why or "is not text"
    return content.decode("utf-8-sig", "replace"), ""


def table_of(home: Home, path: Path, found: Found) -> Mapping[str, Any]:
    """Parse a TOML or JSON file; return {} if it is missing. Add an invalid file to `found`."""
    if not path.is_file():
        return {}
    text, why = text_of(path)
    try:
        if not why:
            return tomllib.loads(text) if path.suffix == ".toml" else json_config(text, path)
    except (tomllib.TOMLDecodeError, ConfigError) as error:
        why = str(error)
    found.append(BrokenFile(file=home.short(path), reason=why))
    return {}
