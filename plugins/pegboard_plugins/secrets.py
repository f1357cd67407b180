"""A permission policy for reading: it asks before a tool reads a file of secrets.

The policy also applies the user's `read` rules for certain files to all tools. A tool names the
files that it would read in the metadata of its permission request: the absolute `filepath` or
`paths`, and the wildcards `globs`. A path that is in `writes` as well is not read, unless
`destroys` or `linked` has it, so that the content may get another name.
"""

import asyncio
import os
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import pegboard.files
import pegboard.unstable
from pegboard import SessionView, hookimpl
from pegboard.files import resolved_path
from pegboard.permissions import Ruleset, judge_rules
from pegboard.schema.session import PermissionRequest, Rule, Verdict

_MOST_GLOBS, _MOST_MATCHES = 50, 2000
"""So many wildcards, and so many files that they fit, are looked at."""
_CHANGING = frozenset({"edit", "external_directory"})


@hookimpl
async def permission_ask(session: SessionView, request: PermissionRequest) -> Verdict | None:
    """Ask before a file of secrets is read, unless a rule of the user covers this file.

    A rule that denies reading certain files, or asks, applies even if they do not look like
    secrets.
    """
    if request.permission in _CHANGING:
        return None
    if (rulesets := _users(session)) and (
        verdict := await asyncio.to_thread(_forbidden, session, request, rulesets)
    ):
        return verdict
    for text in _read(request):
        names = tuple(dict.fromkeys((text, resolved_path(text))))
        if any(pegboard.files.secret_path(Path(name)) for name in names):
            verdict = _judge_by_rules(session, names)
            if verdict is None or verdict.action == "ask":
                return _ask(names[-1])
            if verdict.action == "deny":
                return verdict
    return None


def _ask(path: str) -> Verdict:
    reason = f"{path} looks like a file of secrets"
    return Verdict(action="ask", reason=reason, source="secrets", firm=True)


def _read(request: PermissionRequest) -> Iterator[str]:
    """Yield the absolute paths of the files that the request would read."""
    path = request.metadata.get("filepath")
    if isinstance(path, str):
        yield path
    renamed = {*request.list_strings("destroys"), *request.list_strings("linked")}
    written = {*request.list_strings("writes")} - renamed - {*request.list_strings("reads")}
    yield from (each for each in request.list_strings("paths") if each not in written)


def _users(session: SessionView) -> tuple[Ruleset, ...]:
    """Return the rulesets reduced to `read` rules for certain files, without the default rules.

    A ruleset without a "deny" or "ask" is left out.
    """
    found = (
        (
            each.source,
            tuple(
                rule
                for rule in each.rules
                if _is_narrow(rule) and not (rule.by and each.source == "config")
            ),
        )
        for each in session.rulesets
    )
    return tuple(
        Ruleset(source=source, rules=rules)
        for source, rules in found
        if any(rule.action != "allow" for rule in rules)
    )


def _forbidden(
    session: SessionView, request: PermissionRequest, rulesets: tuple[Ruleset, ...]
) -> Verdict | None:
    """Return the "deny" or "ask" of the rules for a file to read, or None.

    Reading a folder counts as reading all that is in it.
    """
    home = session.home or Path.home()
    fitting = islice(map(pegboard.unstable.shell_paths, request.list_strings("globs")), _MOST_GLOBS)
    for text in (*_read(request), *islice(chain.from_iterable(fitting), _MOST_MATCHES)):
        names = dict.fromkeys((text, resolved_path(text)))
        inside = [f"{name}/*" for name in names if os.path.isdir(name)]  # noqa: PTH112 - texts
        verdict = judge_rules(rulesets, "read", (*names, *inside), home=home)
        if verdict.source and verdict.action != "allow":
            return verdict
    return None


def _judge_by_rules(session: SessionView, names: tuple[str, ...]) -> Verdict | None:
    """Return the verdict of the user's `read` rules on these names, or None if no rule applies."""
    narrow = tuple(
        rule
        for ruleset in session.rulesets
        if ruleset.source == "config"
        for rule in ruleset.rules
        if _is_narrow(rule)
    )
    if not narrow:
        return None
    ruleset = Ruleset(source="config", rules=narrow)
    verdict = judge_rules([ruleset], "read", names, home=session.home or Path.home())
    return verdict if verdict.source else None


def _is_narrow(rule: Rule) -> bool:
    return rule.permission == "read" and rule.pattern != "*"
