"""Permission rules about MCP tools, which name a tool by its id or as `mcp__SERVER__TOOL`."""

from collections.abc import Mapping
from typing import TypeVar

from pegboard import evolve
from pegboard.schema.config import Config
from pegboard_mcp.names import id_pattern, with_ids

_T = TypeVar("_T")


def with_ids_of_tools(config: Config) -> Config:
    """Add a rule with the tool's id for each rule that names a tool as `mcp__SERVER__TOOL`."""
    agents = {
        name: evolve(
            each,
            permission=with_ids(each.permission),
            project_permission=with_ids(each.project_permission),
            exposure=_with_ids(each.exposure),
        )
        for name, each in config.agent.items()
    }
    return evolve(
        config,
        agent=agents,
        permission=with_ids(config.permission),
        project_permission=with_ids(config.project_permission),
        rulesets=tuple(evolve(each, rules=with_ids(each.rules)) for each in config.rulesets),
        approvals=with_ids(config.approvals),
        exposure=_with_ids(config.exposure),
    )


def _with_ids(patterns: Mapping[str, _T]) -> dict[str, _T]:
    found = {}
    for pattern, word in patterns.items():
        found[pattern] = word
        if ids := id_pattern(pattern):
            found[ids] = word
    return found
