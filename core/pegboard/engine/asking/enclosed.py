"""Commands that run unasked because they are enclosed, where the user wants it so."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from pegboard.contract import hookspecs
from pegboard.contract.context import SessionView
from pegboard.engine.engine import Engine
from pegboard.kit.openat import resolved_path
from pegboard.policy.permissions import deciding
from pegboard.schema.session import PermissionRequest, Verdict

SANDBOX = "sandbox"
"""The source of a verdict that the sandbox has changed."""
RUNS_IN = "runs_in"
"""In a request's metadata: the folder of a process that the tool starts by its context alone."""
_PATHS = ("paths", "writes", "destroys", "linked", "lands")
_OF_THE_USER = frozenset({"config", "agent"})


async def unasked_inside(
    engine: Engine, view: SessionView, request: PermissionRequest, verdict: Verdict
) -> Verdict:
    """An allow in the place of an ask, for a command that can do nothing outside of the project.

    Only a rule for everything is answered so: what a rule names, what a plugin or the project
    wants asked, what is unclear and what names a path elsewhere is asked as ever.
    """
    enclosure, folder = engine.enclosure, request.metadata.get(RUNS_IN)
    if enclosure is None or not engine.config.sandbox_allow_commands or not folder:
        return verdict
    if request.metadata.get("unclear") or _is_named(engine.home, view, request):
        return verdict
    opinions = await engine.hooks.opinions(hookspecs.permission_ask, session=view, request=request)
    if any(each.value.action == "ask" and each.value.rule is None for each in opinions):
        return verdict
    paths = tuple(_paths(view, request, str(folder)))
    if not await asyncio.to_thread(_are_inside, paths, view.worktree):
        return verdict
    reason = f"it runs in the sandbox ({enclosure.level}); without it: {verdict.reason}"
    return replace(verdict, action="allow", reason=reason, source=SANDBOX)


def _is_named(home: Path, view: SessionView, request: PermissionRequest) -> bool:
    """Whether a rule that asks is about more or less than everything, or not the user's."""
    speaking = (
        (ruleset.source, deciding(ruleset, request.permission, text, home=home))
        for ruleset in view.rulesets
        for text in request.patterns or ("*",)
    )
    return any(
        rule.action == "ask" and (rule.pattern != "*" or source not in _OF_THE_USER)
        for source, rule in speaking
        if rule is not None
    )


def _paths(view: SessionView, request: PermissionRequest, folder: str) -> Iterator[str]:
    yield folder
    if not any(key in request.metadata for key in _PATHS):  # then its patterns are paths
        yield from (str(view.worktree / pattern) for pattern in request.patterns)
    for key in _PATHS:
        found = request.metadata.get(key)
        yield from found if isinstance(found, list) else ()


def _are_inside(paths: tuple[str, ...], worktree: Path) -> bool:
    return all(path and Path(resolved_path(path)).is_relative_to(worktree) for path in paths)
