"""What the user may ask about permissions, and take back."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pegboard.errors import NotFoundError
from pegboard.permissions import matches
from pegboard.schema.permission import Rule, Scope
from pegboard.session.asking import USER_SCOPE
from pegboard.session.engine import Engine
from pegboard.session.explain import Explanation, explained
from pegboard.storage.changes import DropApproval


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """What was approved for good, and how far: for the `project`, or all of the `user`'s."""

    scope: str
    rule: Rule


class Policy:
    """The permissions of one App, as its user looks at them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def explain(
        self, tool: str, args: Mapping[str, Any], *, agent: str | None = None
    ) -> Explanation:
        """What would be asked for this call, and who would answer what; nothing runs.

        :raises ToolError: when there is no such tool, or the arguments do not fit it.
        :raises NotFoundError: when there is no such agent.
        """
        return await explained(self._engine, tool, args, agent=agent)

    def approve(self, request_id: str, scope: Scope) -> None:
        """Allow what waits, and the like of it from now on, as far as `scope` goes.

        :raises NotFoundError: when no request of this id waits.
        """
        self._engine.desk.reply(request_id, "always", scope=scope)

    async def approvals(self) -> tuple[Approval, ...]:
        """What was approved for good here, oldest first, then for all projects."""
        storage, project = self._engine.storage, self._engine.workspace.project_id
        return (
            *_scoped("project", await storage.approvals(project)),
            *_scoped("user", await storage.approvals(USER_SCOPE)),
        )

    async def revoke(self, permission: str, pattern: str = "*") -> tuple[Approval, ...]:
        """The approvals that are hereby taken back: those whose texts fit both wildcards.

        :raises NotFoundError: when none fits.
        """
        found = tuple(
            each
            for each in await self.approvals()
            if matches(permission, each.rule.permission) and matches(pattern, each.rule.pattern)
        )
        if not found:
            raise NotFoundError("approval", f"{permission} {pattern}")
        for scope, key in (("project", self._engine.workspace.project_id), ("user", USER_SCOPE)):
            rules = tuple(each.rule for each in found if each.scope == scope)
            await self._engine.storage.commit(DropApproval(key, rules))
        gone = {each.rule for each in found}
        self._engine.approvals[:] = [rule for rule in self._engine.approvals if rule not in gone]
        return found


def _scoped(scope: str, rules: Sequence[Rule]) -> tuple[Approval, ...]:
    return tuple(Approval(scope=scope, rule=rule) for rule in rules)
