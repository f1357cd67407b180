"""The names of MCP tools: the ids that models see, and the `mcp__` names in permission rules."""

import hashlib
import re
from collections.abc import Iterable, Mapping

from pegboard.schema.session import Rule

ID_LETTERS = 64
_HEAD_LETTERS = 55
_OTHER_SPELLING = re.compile(r"mcp__(?P<server>.+?)(?:__(?P<tool>.+))?")


def tool_ids(server: str, tools: Iterable[str]) -> Mapping[str, str]:
    """Return an id `SERVER_TOOL` for each tool of a server, by tool name.

    Characters that providers reject become `_`. An id of more than 64 characters, or an id that
    several tools share, ends with 8 hexadecimal digits of the SHA-256 of the tool's name.
    """
    plain = {tool: _allowed(f"{server}_{tool}") for tool in tools}
    ids = list(plain.values())
    return {
        tool: name
        if len(name) <= ID_LETTERS and ids.count(name) == 1
        else f"{name[:_HEAD_LETTERS]}_{hashlib.sha256(f'{server}/{tool}'.encode()).hexdigest()[:8]}"
        for tool, name in plain.items()
    }


def command_name(server: str, prompt: str) -> str:
    """Return the name of a prompt's slash command, `server:prompt`, without spaces."""
    return re.sub(r"[\s/]+", "-", f"{server}:{prompt}")


def id_pattern(written: str) -> str | None:
    """Return the id pattern for a permission `mcp__SERVER__TOOL`, or None for another permission.

    `mcp__SERVER` alone matches all tools of the server.
    """
    match = _OTHER_SPELLING.fullmatch(written)
    if match is None:
        return None
    pattern = f"{match['server']}_{match['tool'] or '*'}"
    return re.sub(r"[^A-Za-z0-9_*?-]", "_", pattern)


def with_ids(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules, and after each `mcp__SERVER__TOOL` rule the same rule for tool ids."""
    found = []
    for rule in rules:
        found.append(rule)
        if pattern := id_pattern(rule.permission):
            found.append(Rule(pattern, rule.pattern, rule.action))
    return tuple(found)


def _allowed(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
