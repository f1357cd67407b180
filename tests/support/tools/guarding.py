"""What the guard says of a request, or of all that the bash tool asks for a line."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pegboard.schema.session import PermissionRequest, Rule, Ruleset, Verdict
from pegboard_plugins.bash.scan import StartPlace, scan
from pegboard_plugins.bash.wildcards import looked_up
from pegboard_plugins.guard import permission_ask


async def said(
    project: Path,
    permission: str,
    patterns: Sequence[str],
    *,
    rules: Sequence[Rule] = (),
    private: Sequence[Path] = (),
    **metadata: Any,
) -> Verdict | None:
    """The guard's opinion on a request in a session of the project."""
    session: Any = SimpleNamespace(
        home=Path.home(),
        private=private,
        worktree=project,
        directory=project,
        rulesets=(Ruleset(source="config", rules=tuple(rules)),),
    )
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission=permission,
        patterns=tuple(patterns),
        metadata=metadata,
        always=(),
    )
    return await permission_ask(session, request)


async def of_command(project: Path, command: str, **facts: Any) -> Verdict | None:
    """Its opinion on what the bash tool asks of `bash` for a line."""
    place = StartPlace(cwd=project, home=Path.home(), worktree=project)
    found = looked_up(scan(command, place), command)
    patterns = [" ".join(argv) for argv in found.commands]
    return await said(
        project,
        "bash",
        patterns,
        writes=[str(path) for path in found.writes],
        destroys=list(found.destroys),
        lands=[str(path) for path in found.lands],
        hazards=dict(found.hazards),
        overlays=list(found.overlays),
        renames=list(found.renames),
        **facts,
    )


async def all_of_command(project: Path, command: str, **facts: Any) -> list[tuple[str, bool]]:
    """What is said of all that the bash tool asks for a line."""
    found = scan(command, StartPlace(cwd=project, home=Path.home(), worktree=project))
    verdicts = [await of_command(project, command, **facts)]
    real = [path.resolve() for path in found.writes]
    if inside := [str(each.relative_to(project)) for each in real if each.is_relative_to(project)]:
        verdicts.append(await said(project, "edit", inside, **facts))
    return [(verdict.action, verdict.firm) for verdict in verdicts if verdict]
