"""The permission rules of `--allow` and `--deny`, which count for one run, chat or batch."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import InvalidInputError, Workspace, evolve, hookimpl
from pegboard.permissions import Ruleset, matches_pattern
from pegboard.plugins import nearest_names
from pegboard.schema.config import Config
from pegboard.schema.session import Action, Rule
from pegboard_plugins.foreignfiles.clauderules import Anchors, read_rules

if TYPE_CHECKING:
    from pegboard import App

_OWN = re.compile(r"([a-z][\w*.-]*)(?:\((.*)\))?", re.DOTALL)
_LIKE_CLAUDES = {"bash": "Bash", "read": "Read", "edit": "Edit"}
"""The permissions with patterns in Claude Code's syntax."""
_WITHOUT_TOOL = ("external_directory", "doom_loop", "destroy", "protected")


def split_rules(text: str) -> Iterator[str]:
    """Split a list of rules at commas and blanks outside of parentheses."""
    depth, rule = 0, ""
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if depth > 0 or not (sign == "," or sign.isspace()):
            rule += sign
        elif rule:
            yield rule
            rule = ""
    if rule:
        yield rule


class RunRules:
    """A plugin with the rules of the command line, such as `Bash(git *)`, `edit` or `task(x)`.

    A rule of `--allow` counts as the user's approval of requests that would be asked; it overrides
    no rule that denies. The rules of `--deny` are a separate ruleset, which no other rule can
    loosen. `split_rules` splits each text into rules.

    :raises InvalidInputError: for a text that is not a rule.
    """

    def __init__(self, *, allow: Sequence[str], deny: Sequence[str]) -> None:
        self._allow = tuple(rule for each in allow for rule in split_rules(each))
        self._deny = tuple(rule for each in deny for rule in split_rules(each))
        nowhere = Path("/")
        self._rules(
            Workspace(directory=nowhere, worktree=nowhere, project_id="", git_dir=None), nowhere
        )

    @hookimpl
    def config_load(self, config: Config, workspace: Workspace, home: Path) -> Config:
        """Return the configuration with the rules of the command line."""
        allowed, denied = self._rules(workspace, home)
        return evolve(
            config,
            approvals=(*config.approvals, *allowed),
            rulesets=(*config.rulesets, Ruleset(source="--deny", rules=denied)),
        )

    def check(self, app: "App") -> None:
        """Check that each rule names a permission that some tool requests.

        Rules about a tool of an MCP server are not checked, because the server may not run here.

        :raises InvalidInputError: for a permission that no tool requests.
        """
        known = {tool.permission for tool in app.tools.values()} | {*_WITHOUT_TOOL}
        given = [("--allow", text) for text in self._allow]
        given += [("--deny", text) for text in self._deny]
        for option, text in given:
            name = text.partition("(")[0]
            if not _OWN.fullmatch(text) or name.startswith("mcp__"):
                continue
            if not any(matches_pattern(name, each) for each in known):
                tool = app.tools.get(name)
                near = [tool.permission] if tool else nearest_names(name, known)
                hint = (
                    f"did you mean {near[0]}?" if near else "`pegboard tool list` shows the tools"
                )
                raise InvalidInputError(f"{option}: no tool asks for the permission {name}; {hint}")

    def _rules(self, workspace: Workspace, home: Path) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
        anchors = Anchors(
            source=home,
            settings=workspace.worktree,
            directory=workspace.directory,
            worktree=workspace.worktree,
            home=home,
        )
        allowed = (rule for text in self._allow for rule in _parse(text, "allow", anchors))
        denied = (rule for text in self._deny for rule in _parse(text, "deny", anchors))
        return tuple(allowed), tuple(denied)


def _parse(text: str, action: Action, anchors: Anchors) -> tuple[Rule, ...]:
    own = _OWN.fullmatch(text)
    if own and own[1] not in _LIKE_CLAUDES and not own[1].startswith("mcp__"):
        return (Rule(own[1], own[2] or "*", action, by=f"--{action}"),)
    written = (
        _LIKE_CLAUDES[own[1]] + text[own.end(1) :] if own and own[1] in _LIKE_CLAUDES else text
    )
    table = {"permissions": {action: [written]}}
    (found,) = read_rules(table, Path(f"--{action}"), anchors, is_project=False)
    if found.reason or not found.rules:
        raise InvalidInputError(
            f"--{action}: {text}: {found.reason}; write a rule as `Bash(git *)`, `Edit(src/**)`,"
            " `WebFetch(domain:example.org)` or `NAME` of a tool"
        )
    return tuple(evolve(rule, by=f"--{action}") for rule in found.rules)
