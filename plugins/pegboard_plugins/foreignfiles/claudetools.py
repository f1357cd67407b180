"""Claude Code's names of tools as Pegboard's permissions."""

import re

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
_OWN = re.compile(r"[a-z][a-z0-9_]*")
_SPECIFIED = re.compile(r"([A-Za-z]\w*)\((.*)\)", re.DOTALL)


def permissions_of(tool: str) -> tuple[tuple[str, str], ...]:
    """Return the permissions and patterns of a tool in a list, () for an unknown one.

    `Agent(x)` and `Task(x)` mean only the subagent x. A tool of a plugin has its own id.
    """
    match = _SPECIFIED.fullmatch(tool)
    name = match[1] if match else tool
    if name.startswith("mcp__"):
        return tuple((each, "*") for each in server_tools(name))
    known = PERMISSIONS.get(name) or (name if _OWN.fullmatch(name) else None)
    if known is None:
        return ()
    if match and known in {"task", "skill"}:
        return tuple((known, each.strip()) for each in match[2].split(","))
    return ((known, "*"),)


def server_tools(name: str) -> tuple[str, ...]:
    """Return the spellings of `mcp__SERVER__TOOL` and `mcp__SERVER` in rules."""
    server, found, tool = name.removeprefix("mcp__").partition("__")
    return name if found else f"{name}__*", f"{server}_{tool if found else '*'}"
