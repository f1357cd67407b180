"""The translation of tools' names and arguments to and from Claude Code, Codex and Gemini CLI."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard_plugins.commandhooks.hookcommand import Product

_FILE = {"file_path": "filePath"}
_EDIT = {
    **_FILE,
    "old_string": "oldString",
    "new_string": "newString",
    "replace_all": "replaceAll",
}
_GREP = {"glob": "include", "-A": "after", "-B": "before", "-C": "context"}


class _Names(msgspec.Struct, frozen=True):
    """The names of a tool and its arguments in Claude Code (current name first) and Gemini CLI."""

    claude: tuple[str, ...]
    gemini: str
    arguments: Mapping[str, str] = {}


_TOOLS: Mapping[str, _Names] = {
    "bash": _Names(("Bash",), "run_shell_command", {"run_in_background": "background"}),
    "read": _Names(("Read",), "read_file", _FILE),
    "write": _Names(("Write",), "write_file", _FILE),
    "edit": _Names(("Edit",), "replace", _EDIT),
    "multiedit": _Names(("MultiEdit", "Edit"), "replace", _EDIT),
    "apply_patch": _Names(("apply_patch", "Edit", "Write"), "replace", {"command": "patchText"}),
    "glob": _Names(("Glob",), "glob"),
    "grep": _Names(("Grep",), "grep_search", _GREP),
    "list": _Names(("LS",), "list_directory", {"dir_path": "path"}),
    "task": _Names(("Agent", "Task"), "invoke_agent"),
    "webfetch": _Names(("WebFetch",), "web_fetch"),
    "websearch": _Names(("WebSearch",), "google_web_search"),
    "todowrite": _Names(("TodoWrite",), "write_todos"),
    "skill": _Names(("Skill",), "activate_skill"),
    "question": _Names(("AskUserQuestion",), "ask_user"),
    "plan_exit": _Names(("ExitPlanMode",), "exit_plan_mode"),
    "lsp": _Names(("LSP",), "lsp"),
}
_PATHS = ("file_path", "path", "dir_path")
_SECTION = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)


class ForeignCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call in another product's form; a hook's matcher may match any of `names`."""

    name: str
    names: tuple[str, ...]
    input: dict[str, Any]

    @property
    def called(self) -> dict[str, Any]:
        """The fields of a hook's input that describe the tool call."""
        return {"tool_name": self.name, "tool_input": self.input}

    @property
    def subject(self) -> str:
        """The command or path that an `if` rule applies to."""
        for name in ("command", *_PATHS, "url", "query", "pattern"):
            if isinstance(value := self.input.get(name), str):
                return value
        return ""


def foreign_calls(
    product: Product, tool: str, source: str, given: Mapping[str, Any], directory: Path
) -> Iterator[ForeignCall]:
    """Yield a call in a product's form; Claude Code gets one call for each file of a patch.

    `source` is the MCP server of the tool, or "" for other tools.
    """
    patch = given.get("patchText")
    if tool == "apply_patch" and product == "claude" and isinstance(patch, str):
        for kind, path in _SECTION.findall(patch):
            name = "Write" if kind == "Add" else "Edit"
            place = os.path.normpath(directory / path.strip())
            arguments = (
                {"file_path": place, "content": patch}
                if kind == "Add"
                else {
                    "file_path": place,
                    "old_string": "",
                    "new_string": patch,
                    "replace_all": False,
                }
            )
            yield ForeignCall(name=name, names=(name, "apply_patch"), input=arguments)
        return
    names = _names(product, tool, source)
    yield ForeignCall(name=names[0], names=names, input=_to_foreign(tool, given, directory))


def _names(product: Product, tool: str, source: str) -> tuple[str, ...]:
    known = _TOOLS.get(tool)
    if known is not None:
        return (known.gemini,) if product == "gemini" else known.claude
    if source:
        bare = tool.removeprefix(f"{source}_")
        return f"mcp__{source}__{bare}", tool
    return (tool,)


def _to_foreign(tool: str, given: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    known = _TOOLS.get(tool)
    back = {ours: theirs for theirs, ours in known.arguments.items()} if known else {}
    found = {back.get(name, name): _plain(value, back) for name, value in given.items()}
    for name in _PATHS if known else ():
        if isinstance(path := found.get(name), str):
            found[name] = os.path.normpath(directory / path)
    if tool == "webfetch":
        found.setdefault("prompt", "")
    if tool == "todowrite" and isinstance(todos := found.get("todos"), list):
        for todo in (each for each in todos if isinstance(each, dict)):
            todo.setdefault("activeForm", todo.get("content", ""))
    return found


def _plain(value: Any, back: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    """Return JSON with plain lists and dicts, and with keys replaced as `back` says."""
    if isinstance(value, Mapping):
        return {back.get(name, name): _plain(each, back) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, back) for each in value]
    return value


def to_ours(tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a hook has changed, under Pegboard's names."""
    known = _TOOLS.get(tool)
    names = known.arguments if known else {}
    return {names.get(name, name): _plain(value, names) for name, value in given.items()}
