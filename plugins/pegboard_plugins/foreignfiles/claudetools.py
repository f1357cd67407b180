"""The translation of Claude Code's tool names into Pegboard's permissions."""

import re
from collections.abc import Sequence, Set

PERMISSIONS = {
    "Bash": "bash",
    "Read": "read",
    "Edit": "edit",
    "Write": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Glob": "glob",
    "Grep": "grep",
    "LS": "list",
    "Agent": "task",
    "Task": "task",
    "WebFetch": "webfetch",
    "WebSearch": "websearch",
    "TodoWrite": "todowrite",
    "Skill": "skill",
    "AskUserQuestion": "question",
    "ExitPlanMode": "plan_exit",
    "LSP": "lsp",
}
CHANGING = {"Write": ("write",), "Edit": ("edit", "multiedit")}
"""Pegboard's tools that an agent lacks without a tool of Claude Code; all request `edit`."""
_SECTION = re.compile(r"^\s*\*\*\*\s*(.*?)\s*(?::|$)", re.MULTILINE)
_SECTIONS = {
    "write": frozenset({"add file"}),
    "edit": frozenset({"update file", "delete file", "move to"}),
}
"""The sections of a patch for which an agent needs each tool."""
_AROUND = frozenset({"begin patch", "end patch", "end of file"})
NOTEBOOKS = "*.ipynb"
_OWN = re.compile(r"[a-z][a-z0-9_]*")
_SPECIFIED = re.compile(r"([A-Za-z]\w*)\((.*)\)", re.DOTALL)


def permissions_of(tool: str) -> tuple[tuple[str, str], ...]:
    """Return the permissions and patterns for a tool in an agent's list; () for an unknown tool.

    `Agent(x)` and `Task(x)` mean only the subagent x. A plugin's tool is listed by its own id.
    """
    match = _SPECIFIED.fullmatch(tool)
    name = match[1] if match else tool
    if name.startswith("mcp__"):
        return tuple((each, "*") for each in server_tools(name))
    known = PERMISSIONS.get(name) or (name if _OWN.fullmatch(name) else None)
    if known is None:
        return ()
    if name == "NotebookEdit":
        return ((known, NOTEBOOKS),)
    if match and known in {"task", "skill"}:
        return tuple((known, each.strip()) for each in match[2].split(","))
    return ((known, "*"),)


def server_tools(name: str) -> tuple[str, ...]:
    """Return the spellings of `mcp__SERVER__TOOL` or `mcp__SERVER` in Pegboard's rules."""
    server, found, tool = name.removeprefix("mcp__").partition("__")
    return name if found else f"{name}__*", f"{server}_{tool if found else '*'}"


def withheld_tools(tools: Sequence[str], refused: Sequence[str]) -> frozenset[str]:
    """Return the editing tools that an agent must not use, from its file's tool lists.

    `tools` are the allowed tools, where empty means all; `refused` are the forbidden ones. The
    result is empty if the agent may neither write nor edit, because it is then denied the
    permission `edit` instead.
    """
    lacking = {
        name
        for name in CHANGING
        if name in refused or (tools and "*" not in tools and name not in tools)
    }
    if len(lacking) == len(CHANGING):
        return frozenset()
    more = ("multiedit",) if "MultiEdit" in refused else ()
    return frozenset((*more, *(each for name in lacking for each in CHANGING[name])))


def refused_section(patch: str, withheld: Set[str]) -> str:
    """Return the first section of a patch that needs a withheld tool, or ""."""
    open_ = _AROUND.union(*(parts for name, parts in _SECTIONS.items() if name not in withheld))
    names = (match[1] for match in _SECTION.finditer(patch))
    return next((name for name in names if name.casefold() not in open_), "")
