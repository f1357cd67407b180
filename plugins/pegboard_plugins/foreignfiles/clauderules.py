"""The conversion of the `permissions` in Claude Code's settings into Pegboard's rules."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.schema.session import Action, Rule
from pegboard_plugins.foreignfiles.claudetools import PERMISSIONS, permissions_of, server_tools

ACTIONS: tuple[Action, ...] = ("allow", "ask", "deny")
MOST_RULES = 1000
"""The maximum number of rules of one list, because each request checks all of them."""
_RULE = re.compile(r"([A-Za-z]\w*(?:__[\w*.-]+)?)(?:\((.*)\))?", re.DOTALL)
_PATH_TOOLS = {"Read": ("read", "edit"), "Edit": ("edit",)}
"""The tools with rules about files; a file that must not be read must not be written."""
_UNREAD = frozenset({"Write", "NotebookEdit", "MultiEdit", "Glob", "Grep"})
"""The tools for which Claude Code ignores rules with a path."""
_BEHIND_A_DOMAIN = ("", "/*", ":*")
_PARAMETER = re.compile(r"([A-Za-z_-]+):.*", re.DOTALL)
_SPAWNING = frozenset(
    {
        *("description", "isolation", "max_turns", "mode", "model", "prompt", "resume"),
        *("run_in_background", "subagent_type", "team_name"),
    }
)
_PARAMETERS = {
    "Bash": frozenset(
        {"command", "dangerouslyDisableSandbox", "description", "run_in_background", "timeout"}
    ),
    "Agent": _SPAWNING,
    "Task": _SPAWNING,
    "Skill": frozenset({"args", "skill"}),
    "Read": frozenset({"file_path", "limit", "offset", "pages"}),
    "Edit": frozenset({"file_path", "new_string", "old_string", "replace_all"}),
}
"""The arguments of tools with rules that may have other text before a colon."""
_ASKED = "asked about whatever its arguments are"


class Anchors(msgspec.Struct, frozen=True, kw_only=True):
    """The folders that paths in rules are relative to; `/x` is relative to `settings`."""

    source: Path
    settings: Path
    directory: Path
    worktree: Path
    home: Path


class ForeignRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of Claude Code as written, and Pegboard's rules for it.

    `reason` says which part of the rule Pegboard cannot express. `is_weaker` means that Pegboard's
    rules deny or ask less than the written rule.
    """

    text: str
    action: Action
    file: Path
    is_project: bool
    rules: tuple[Rule, ...] = ()
    reason: str = ""
    is_weaker: bool = False


def read_rules(
    table: Mapping[str, Any], file: Path, anchors: Anchors, *, is_project: bool
) -> Iterator[ForeignRule]:
    """Yield the rules of a settings table: rules that allow first, rules that deny last."""
    permissions = table.get("permissions")
    for action in ACTIONS:
        texts = permissions.get(action) if isinstance(permissions, Mapping) else None
        for text in texts[:MOST_RULES] if isinstance(texts, list) else ():
            if not isinstance(text, str):
                continue
            pairs, reason = _pairs(text.strip(), action, anchors)
            by = "" if action == "allow" else str(file)  # an allow is as if the user wrote it
            yield ForeignRule(
                text=text,
                action=action,
                file=file,
                is_project=is_project,
                rules=tuple(
                    Rule(name, pattern, "ask" if reason else action, by=by)
                    for name, pattern in pairs
                ),
                reason=reason,
                is_weaker=bool(reason) and action != "allow",
            )


_Pairs = tuple[tuple[str, str], ...]


def _pairs(text: str, action: Action, anchors: Anchors) -> tuple[_Pairs, str]:
    """Return a rule's permissions with patterns, and a reason if a part of the rule is lost."""
    match = _RULE.fullmatch(text)
    if match is None:
        return (), "not a rule"
    name, given = match[1], match[2]
    if name.startswith("mcp__"):
        found = tuple((each, "*") for each in server_tools(name))
        return _whole(found, action) if given not in {None, "", "*"} else (found, "")
    permission = PERMISSIONS.get(name)
    if permission is None:
        return (), f"Pegboard has no tool {name}"
    return _of_tool(name, given, action, anchors)


def _of_tool(name: str, given: str | None, action: Action, anchors: Anchors) -> tuple[_Pairs, str]:
    permission = PERMISSIONS[name]
    if given is None or given in {"", "*"}:
        return permissions_of(name), ""
    if _names_parameter(name, given):
        return _whole(((permission, "*"),), action)
    if name in _PATH_TOOLS:
        both = _PATH_TOOLS[name] if action == "deny" else (permission,)
        return tuple(pair for each in both for pair in _paths(each, given, anchors)), ""
    if patterns := _patterns(name, given):
        return tuple((permission, pattern) for pattern in patterns), ""
    if name in _UNREAD:
        return (), f"paths of {name} are not looked at, in Claude Code neither; use Edit or Read"
    return (), f"Pegboard has no such rule for {name}"


def _whole(pairs: _Pairs, action: Action) -> tuple[_Pairs, str]:
    """Return the result for a rule about an argument's value, which Pegboard cannot check.

    A rule that denies or asks becomes one that asks about each call of the tool. A rule that allows
    is ignored.
    """
    return ((), "a rule about an argument allows nothing") if action == "allow" else (pairs, _ASKED)


def _names_parameter(name: str, given: str) -> bool:
    """Return whether `given`, the text in a rule's parentheses, is about an argument's value.

    For example, `Bash(timeout:5)` is about an argument, and `Bash(timeout:*)` about a command.
    """
    match = _PARAMETER.fullmatch(given)
    if match is None or given.startswith("domain:") or (name == "Bash" and given.endswith(":*")):
        return False
    return match[1] in _PARAMETERS.get(name, {match[1]})


def _patterns(name: str, given: str) -> tuple[str, ...]:
    """Return the patterns of a rule about a command, a domain or a name; () for other rules."""
    match name:
        case "Bash":
            return (f"{given[:-2]} *" if given.endswith(":*") else given,)
        case "WebFetch" if given.startswith("domain:"):
            domain = given.removeprefix("domain:")
            sites = [f"{scheme}://{domain}" for scheme in ("https", "http")]
            return tuple(f"{site}{end}" for site in sites for end in _BEHIND_A_DOMAIN)
        case "Agent" | "Task" | "Skill":
            return (re.sub(r"(:| )\*$", "", given),)
        case _:
            return ()


def _paths(permission: str, given: str, anchors: Anchors) -> _Pairs:
    """Return the patterns for a path in the syntax of `.gitignore`.

    Pegboard's `*` also matches slashes, so a pattern can match more files than in Claude Code.
    Patterns for `read` are absolute paths, and those for `edit` are relative to the worktree.
    """
    base, rest = _anchored(given, anchors)
    plain = re.sub(r"\[[^\]]*\]", "?", rest)
    plain = re.sub(r"\*+(?:/\*+)*", "*", plain)
    deep = base == anchors.directory and "/" not in plain.rstrip("/*")
    stem = plain.rstrip("/")
    tails = [stem] if stem.endswith("*") else [stem, f"{stem}/*"]
    if plain.endswith("/"):
        tails = [f"{stem}/*"]
    heads = [f"{base}".rstrip("/") + "/"]
    if deep and not given.startswith(("/", "./", "~")):
        heads.append(f"{heads[0]}*/")
    found = [f"{head}{tail}" for head in heads for tail in tails]
    if permission == "edit":
        found = [_from_worktree(path, anchors.worktree) for path in found]
    return tuple((permission, path) for path in dict.fromkeys(found))


def _anchored(given: str, anchors: Anchors) -> tuple[Path, str]:
    """Return the folder that a path is relative to, and the remaining path."""
    if given.startswith("//"):
        return Path("/"), given.lstrip("/")
    if given.startswith("/"):
        return anchors.settings, given.lstrip("/")
    if given.startswith("~/"):
        return anchors.home, given[2:]
    folder, rest = anchors.directory, given
    while rest.startswith(("./", "../")):
        head, _, rest = rest.partition("/")
        folder = folder.parent if head == ".." else folder
    return folder, rest


def _from_worktree(path: str, worktree: Path) -> str:
    return os.path.relpath(path, worktree)
