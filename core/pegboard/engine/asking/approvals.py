"""What the user may ask about permissions, and take back."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from pegboard.contract.changes import DropApproval
from pegboard.engine.engine import Engine
from pegboard.errors import NotFoundError
from pegboard.policy.permissions import matches
from pegboard.schema.session import USER_KEY, Approval, Scope

if TYPE_CHECKING:
    from pegboard.engine.asking.explained import Explanation


class Policy:
    """The permissions of one App, as its user looks at them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def sandbox(self) -> str:
        """What encloses the processes of tools, on one line; empty where nothing does."""
        enclosure = self._engine.enclosure
        return "" if enclosure is None else enclosure.described

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that enclosed processes reach, where there is a list of them."""
        enclosure = self._engine.enclosure
        return () if enclosure is None else enclosure.hosts

    async def explain(
        self, tool: str, args: Mapping[str, Any], *, agent: str | None = None
    ) -> "Explanation":
        """What would be asked for this call, and who would answer what; nothing runs.

        :raises ToolError: when there is no such tool, or the arguments do not fit it.
        :raises NotFoundError: when there is no such agent.
        """
        from pegboard.engine.asking.explained import explained  # only who asks needs it

        return await explained(self._engine, tool, args, agent=agent)

    async def approve(self, request_id: str, scope: Scope, *, agent_only: bool = False) -> None:
        """Allow what waits, and the like of it from now on, as far as `scope` goes.

        `agent_only` limits that to the agent that asked.

        Returns once it is stored.

        :raises NotFoundError: when no request of this id waits.
        """
        await self._engine.requests.reply(request_id, "always", scope=scope, agent_only=agent_only)

    async def approvals(self) -> tuple[Approval, ...]:
        """What was approved for good: for single sessions, for the project, for all projects."""
        storage, project = self._engine.storage, self._engine.workspace.project_id
        return (
            *await storage.session_approvals(project),
            *await storage.approvals(project),
            *await storage.approvals(USER_KEY),
        )

    async def revoke(
        self, permission: str = "*", pattern: str = "*", *, ids: Collection[int] = ()
    ) -> tuple[Approval, ...]:
        """The approvals that are hereby taken back, from all Apps at once.

        They are those with these numbers, or those whose texts fit both wildcards.

        :raises NotFoundError: when none fits, or one of the numbers is no approval's.
        """
        found = await self.approvals()
        if unknown := sorted(set(ids) - {each.id for each in found}):
            raise NotFoundError("approval", ", ".join(map(str, unknown)))
        chosen = tuple(
            each
            for each in found
            if (each.id in ids or not ids)
            and matches(permission, each.rule.permission)
            and matches(pattern, each.rule.pattern)
        )
        if not chosen:
            raise NotFoundError("approval", f"{permission} {pattern}")
        await self._engine.storage.commit(DropApproval(tuple(each.id for each in chosen)))
        for each in chosen:
            facts = {"scope": each.scope, "agent": each.agent, "pattern": each.rule.pattern}
            facts |= {"permission": each.rule.permission, "by": "user"}
            await self._engine.decided("revoke", facts)
        return chosen
