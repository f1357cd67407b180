"""Details of an explanation: the permission rules, and the commands and paths of a shell line."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from pegboard import SessionView
from pegboard.files import resolved_path
from pegboard.permissions import UNCLEAR, deciding_rule
from pegboard.schema.session import PermissionRequest, Rule

BUILT_IN = "built-in"
"""The source of settings that no file sets."""


class DecidingRule(msgspec.Struct, frozen=True, kw_only=True):
    """The permission rule that decides about a pattern; `source` names the rule's set of rules."""

    permission: str
    pattern: str
    source: str
    rule: Rule


def spoken_rules(view: SessionView, request: PermissionRequest) -> list[DecidingRule]:
    """Return the deciding permission rule for each pattern of a request, in each set of rules."""
    found = []
    for pattern in request.patterns:
        for ruleset in view.rulesets:
            rule = deciding_rule(
                ruleset, request.permission, pattern, home=view.home or Path.home()
            )
            if rule is not None:
                found.append(
                    DecidingRule(
                        permission=request.permission,
                        pattern=pattern,
                        source=rule.by or ruleset.source,
                        rule=rule,
                    )
                )
    return found


def commands(requests: Sequence[PermissionRequest]) -> tuple[str, ...]:
    """Return the commands of a shell line, without duplicates."""
    found = (
        pattern
        for request in requests
        if "command" in request.metadata and "unclear" in request.metadata
        for pattern in (*request.patterns, *listed([request], "commands"))
        if not pattern.startswith(UNCLEAR)
    )
    return tuple(dict.fromkeys(found))


def listed(requests: Sequence[PermissionRequest], key: str) -> tuple[str, ...]:
    """Return the strings of all lists under `key` in the requests' metadata."""
    return tuple(
        str(text)
        for request in requests
        if isinstance(texts := request.metadata.get(key), list)
        for text in texts
    )


def place(requests: Sequence[PermissionRequest]) -> str:
    """Return the shell line with an underline where the parser failed, or "" if it did not."""
    places = (request.metadata.get("place") for request in requests)
    return next((str(each.get("marked", "")) for each in places if isinstance(each, dict)), "")


def paths_outside(view: SessionView, requests: Sequence[PermissionRequest]) -> tuple[str, ...]:
    """Return the paths outside of the project; paths in `/proc` are not resolved."""
    paths: dict[str, None] = {}
    for request in requests:
        named = request.metadata.get("paths")
        if request.permission == "external_directory":
            named = [*(named or ()), request.metadata.get("filepath")]
        for path in named if isinstance(named, list) else ():
            real = str(path) if str(path).startswith("/proc/") else resolved_path(str(path))
            if not Path(real).is_relative_to(view.worktree):
                paths[real] = None
    return tuple(paths)
