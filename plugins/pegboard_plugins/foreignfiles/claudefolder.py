"""The parser of the user's and a project's `.claude` folders: agents, commands and rules."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard import Workspace
from pegboard.schema.config import Agent, Command
from pegboard.schema.part import ModelChoice
from pegboard.schema.session import Rule, Ruleset
from pegboard.unstable import read_bounded
from pegboard_plugins.foreignfiles.clauderules import Anchors, ForeignRule, read_rules
from pegboard_plugins.foreignfiles.claudetools import permissions_of, withheld_tools
from pegboard_plugins.shared.frontend import (
    argument_hints,
    argument_names,
    front_matter,
    listed,
)

LIMIT_BYTES = 256 * 1024
FOLDER = ".claude"
DEFINITIONS = ("agents", "commands")
SETTINGS = ("settings.json", "settings.local.json")
PLAN = "plan"
"""The mode of settings in which Pegboard also starts; other modes would allow more."""
MOST_FILES = 500
MOST_FOLDERS = 200
_NAME = re.compile(r"[A-Za-z0-9][\w:.-]{0,63}")
_OURS = frozenset({"build", "plan"})
"""The agents of Pegboard that talk to the user and that no subagent can replace."""
_OF_AN_AGENT = frozenset({"name", "description", "tools", "disallowedTools", "maxTurns", "effort"})
_OF_A_COMMAND = frozenset({"description", "argument-hint", "arguments", "allowed-tools"})
_WITHOUT_EFFECT = frozenset({"color", "disable-model-invocation", "user-invocable"})
_COLORS = {
    "red": "#e5484d",
    "orange": "#f76b15",
    "yellow": "#ffc53d",
    "green": "#30a46c",
    "cyan": "#00a2c7",
    "blue": "#0090ff",
    "purple": "#8e4ec6",
    "pink": "#d6409f",
}
_LIKE_OURS = {"model": frozenset({"inherit"}), "permissionMode": frozenset({"default"})}
"""The settings and their values that describe what Pegboard does anyway."""


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A Markdown file that defines an agent or a command; `kind` names the folder it lies in."""

    kind: str
    name: str
    path: Path


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The parents of `.claude` folders: the user's home, and folders of the project."""

    home: Path
    workspace: Workspace
    projects: tuple[Path, ...]


class ClaudeSetup(msgspec.Struct, kw_only=True):
    """The agents, commands and rules of `.claude` folders; `notes` are lines about ignored parts.

    `plans` means that the settings start sessions in plan mode. `withheld` has the tools that an
    agent must not use, by the agent's name.
    """

    agents: tuple[Agent, ...] = ()
    commands: tuple[Command, ...] = ()
    rules: tuple[ForeignRule, ...] = ()
    notes: tuple[str, ...] = ()
    plans: bool = False
    withheld: Mapping[str, frozenset[str]] = {}

    @property
    def tightening(self) -> tuple[Ruleset, ...]:
        """The rules with the action ask or deny, as one ruleset; the rules that deny come last."""
        found = [rule for each in self.rules if each.action != "allow" for rule in each.rules]
        found.sort(key=lambda rule: rule.action == "deny")
        return (Ruleset(source="Claude Code", rules=tuple(found)),) if found else ()

    @property
    def allowed(self) -> tuple[Rule, ...]:
        """The rules with the action allow, from the user's files only."""
        found = [each for each in self.rules if each.action == "allow" and not each.is_project]
        return tuple(rule for each in found for rule in each.rules)


def read_setup(places: Places, trusted: Mapping[Path, bytes]) -> ClaudeSetup:
    """Read the settings of all folders, and the agents and commands in trusted files."""
    agents: dict[str, Agent] = {}
    commands: dict[str, Command] = {}
    withheld: dict[str, frozenset[str]] = {}
    rules: list[ForeignRule] = []
    notes: list[str] = []
    mode = ""
    root = places.workspace.worktree
    for folder in (places.home, *places.projects):
        is_project = folder != places.home
        for file in definition_files(folder / FOLDER, within=root if is_project else None):
            if is_project and file.path not in trusted:
                continue
            content, why = (trusted[file.path], "") if is_project else read_bounded(file.path)
            read = read_definition(file, content, why)
            notes += [f"{_short(file.path, places)}: {each}" for each in read.notes]
            agents |= {each.name: each for each in read.agents}
            withheld |= {
                each.name: read.withheld.get(each.name, frozenset()) for each in read.agents
            }
            commands |= {each.name: each for each in read.commands}
        for name in SETTINGS if is_project else SETTINGS[:1]:
            path = folder / FOLDER / name
            found, problems = settings_rules(path, places, is_project=is_project)
            rules += found
            mode = default_mode(path) or mode
            notes += [f"{_short(path, places)}: {each}" for each in problems]
    return ClaudeSetup(
        agents=tuple(agents.values()),
        commands=tuple(commands.values()),
        rules=tuple(rules),
        notes=tuple(notes),
        plans=mode == PLAN,
        withheld=withheld,
    )


def default_mode(path: Path) -> str:
    """Return the permission mode in which a settings file starts sessions, or ""."""
    permissions = read_settings(path)[0].get("permissions") if path.is_file() else None
    mode = permissions.get("defaultMode") if isinstance(permissions, Mapping) else None
    return mode if isinstance(mode, str) else ""


def settings_rules(
    path: Path, places: Places, *, is_project: bool
) -> tuple[tuple[ForeignRule, ...], tuple[str, ...]]:
    """Return the rules of a settings file, and messages about rules that count only partly.

    A file that cannot be read also gives a message.
    """
    if not path.is_file():
        return (), ()
    table, problem = read_settings(path)
    anchor = path.parent if not is_project else path.parent.parent
    anchors = Anchors(
        source=path,
        settings=anchor,
        directory=places.workspace.directory,
        worktree=places.workspace.worktree,
        home=places.home,
    )
    rules = tuple(read_rules(table, path, anchors, is_project=is_project))
    lost = [f"{each.action} {each.text} ({each.reason})" for each in rules if each.is_weaker]
    return rules, (*([problem] if problem else []), *lost)


def read_settings(path: Path) -> tuple[Mapping[str, Any], str]:
    """Return the settings in a JSON file; the second value says why it cannot be read, or is ""."""
    content, why = read_bounded(path)
    if why:
        return {}, why
    try:
        table = msgspec.json.decode(content)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        return {}, f"is not valid JSON: {error}"
    return (table, "") if isinstance(table, dict) else ({}, "is no table of settings")


def definition_files(folder: Path, *, within: Path | None) -> Iterator[Definition]:
    """Yield the agents and commands of a folder, sorted by path.

    With `within`, symlinks that lead out of this folder are skipped.
    """
    for kind in DEFINITIONS:
        top = folder / kind
        for path in _markdown_below(top, within):
            name = path.relative_to(top).with_suffix("").as_posix().replace("/", ":")
            real = path if within is None else path.resolve()
            yield Definition(kind=kind, name=name, path=real)


def _markdown_below(top: Path, within: Path | None) -> Iterator[Path]:
    root = within.resolve() if within else None
    seen: set[str] = set()
    count = 0
    for place, folders, names in os.walk(top, followlinks=within is None):
        folders.sort()
        real = os.path.realpath(place)
        if real in seen or len(seen) >= MOST_FOLDERS:
            folders.clear()
            continue
        seen.add(real)
        for path in (Path(place, name) for name in sorted(names) if name.endswith(".md")):
            inside = root is None or path.resolve().is_relative_to(root)
            if inside and path.resolve().suffix == ".md" and path.is_file():
                count += 1
                if count > MOST_FILES:
                    return
                yield path


def read_definition(file: Definition, content: bytes, why: str) -> ClaudeSetup:
    """Parse an agent or a command; `why` says why its file could not be read, or is ""."""
    if not why and len(content) > LIMIT_BYTES:
        why = f"longer than {LIMIT_BYTES >> 10} KiB"
    if not why and b"\0" in content:
        why = "is not text"
    if why:
        return ClaudeSetup(notes=(why,))
    settings, body = front_matter(content.decode("utf-8-sig", "replace"))
    make = _agent if file.kind == "agents" else _command
    return make(file, settings or {}, body.strip())


def _agent(file: Definition, settings: Mapping[str, Any], body: str) -> ClaudeSetup:
    name = settings.get("name", file.path.stem)
    description = settings.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _OURS:
        return ClaudeSetup(notes=("its name is none that an agent can have",))
    if not isinstance(description, str) or not description.strip():
        return ClaudeSetup(notes=("it has no description",))
    rules, unknown, withheld = _agent_rules(settings)
    steps = settings.get("maxTurns")
    effort = settings.get("effort")
    known = {*_OF_AN_AGENT, "model", "permissionMode"}
    provider, _, model = _full_model(settings).partition("/")
    agent = Agent(
        name=name,
        mode="subagent",
        permission=rules,
        options={},
        description=" ".join(description.split()),
        prompt=body or None,
        steps=int(steps) if isinstance(steps, str) and steps.isdigit() and int(steps) else None,
        variant=effort if isinstance(effort, str) else None,
        color=_COLORS.get(str(settings.get("color"))),
        model=ModelChoice(provider_id=provider, model_id=model) if model else None,
    )
    notes = [*unknown, *_unused(settings, known)]
    return ClaudeSetup(
        agents=(agent,),
        notes=(", ".join(notes),) if notes else (),
        withheld={name: withheld} if withheld else {},
    )


def _agent_rules(
    settings: Mapping[str, Any],
) -> tuple[tuple[Rule, ...], tuple[str, ...], frozenset[str]]:
    """Return an agent's rules, notes about tools that Pegboard lacks, and the withheld tools."""
    tools, refused = listed(settings.get("tools")), listed(settings.get("disallowedTools"))
    rules: list[Rule] = []
    unknown: list[str] = []
    if tools and tools != ("*",):
        rules.append(Rule("*", "*", "deny"))
        rules += [Rule(each, "*", "allow") for each in ("external_directory", "doom_loop")]
        for tool in tools:
            found = permissions_of(tool)
            unknown += [] if found else [f"the tool {tool}"]
            rules += [Rule(name, pattern, "allow") for name, pattern in found]
    elif "Agent" not in refused:
        rules.append(Rule("task", "*", "deny"))
    withheld = withheld_tools(tools, refused)
    for tool in refused:
        if withheld and permissions_of(tool) == (("edit", "*"),):
            continue
        rules += [Rule(name, pattern, "deny") for name, pattern in permissions_of(tool)]
    if settings.get("permissionMode") == "plan":
        rules += [Rule(each, "*", "deny") for each in ("edit", "bash")]
    return tuple(rules), tuple(unknown), withheld


def _command(file: Definition, settings: Mapping[str, Any], body: str) -> ClaudeSetup:
    if not _NAME.fullmatch(file.name):
        return ClaudeSetup(notes=("its name is none that a command can have",))
    description = settings.get("description")
    if not isinstance(description, str) or not description.strip():
        description = body.partition("\n")[0].strip("# ")[:100]
    agent = settings.get("agent")
    is_fork = settings.get("context") == "fork"
    command = Command(
        name=file.name,
        template=body,
        argument_names=argument_names(settings),
        hints=argument_hints(settings, body),
        description=" ".join(description.split()) or None,
        agent=agent if is_fork and isinstance(agent, str) else None,
        model=_full_model(settings) or None,
        source="command",
        subtask=True if is_fork else None,
    )
    known = _OF_A_COMMAND | ({"context", "agent"} if is_fork else frozenset())
    notes = list(_unused(settings, known))
    return ClaudeSetup(commands=(command,), notes=(", ".join(notes),) if notes else ())


def _full_model(settings: Mapping[str, Any]) -> str:
    """Return the model as `provider/model`, or "" for a name without a provider."""
    model = settings.get("model")
    return model if isinstance(model, str) and re.fullmatch(r"[^/\s]+/\S+", model) else ""


def _unused(settings: Mapping[str, Any], known: frozenset[str] | set[str]) -> Iterator[str]:
    """Yield the settings of a file that have no effect, some with their value."""
    for key, value in settings.items():
        if key == "permissionMode" and value == "plan":
            continue
        is_like_ours = isinstance(value, str) and value in _LIKE_OURS.get(key, ())
        is_like_ours = is_like_ours or (key == "model" and bool(_full_model(settings)))
        if key in _LIKE_OURS and not is_like_ours:
            yield f"{key} {value}"
        elif key not in known and key not in _WITHOUT_EFFECT and not is_like_ours:
            yield key


def _short(path: Path, places: Places) -> str:
    for root, sign in ((places.workspace.worktree, ""), (places.home, "~/")):
        if path.is_relative_to(root):
            return f"{sign}{path.relative_to(root)}"
    return str(path)
