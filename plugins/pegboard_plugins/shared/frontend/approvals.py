"""The user's permanent approvals, and their removal."""

from collections.abc import Collection

from pegboard import App
from pegboard.errors import NotFoundError
from pegboard.permissions import matches_pattern
from pegboard.schema.session import USER_KEY, Approval


async def approvals_of(app: App) -> tuple[Approval, ...]:
    """Return the permanent approvals for the project's sessions, the project, and all projects."""
    storage, project = app.storage, app.workspace.project_id
    return (
        *await storage.session_approvals(project),
        *await storage.approvals(project),
        *await storage.approvals(USER_KEY),
    )


async def revoke(
    app: App, permission: str = "*", pattern: str = "*", *, ids: Collection[int] = ()
) -> tuple[Approval, ...]:
    """Revoke permanent approvals, also in other open Apps, and return the revoked approvals.

    Without `ids`, the wildcards `permission` and `pattern` select approvals. With `ids`, only
    approvals with one of these ids are considered.

    :raises NotFoundError: when no approval matches, or an id belongs to no approval.
    """
    found = await approvals_of(app)
    if unknown := sorted(set(ids) - {each.id for each in found}):
        raise NotFoundError("approval", ", ".join(map(str, unknown)))
    chosen = tuple(
        each
        for each in found
        if (each.id in ids or not ids)
        and matches_pattern(permission, each.rule.permission)
        and matches_pattern(pattern, each.rule.pattern)
    )
    if not chosen:
        raise NotFoundError("approval", f"{permission} {pattern}")
    await app.policy.revoke(chosen)
    return chosen
