"""What the fake model says: the model's name is the script, and the history tells the step.

hello         a short text
steps-N       N shell calls one after the other, then a text
par-N         N shell calls in one answer, then a text
stream-N      one text of N deltas, as fast as the client reads
paced-N-R     the same, R deltas a second, each the nanosecond of its sending
prose-N-R     Markdown of N deltas, R a second, with a paragraph now and then
edit          reads target.txt, edits it, then a text
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Body = Mapping[str, Any]
Tools = Mapping[str, Mapping[str, Any]]
"""The offered tools: name to JSON Schema."""
Call = tuple[str, dict[str, Any]]

READ_TOOLS = ("read", "read_file", "view")
EDIT_TOOLS = ("edit", "edit_file", "str_replace", "replace")
SHELL_TOOLS = ("bash", "exec_command", "shell_command", "shell", "run_shell_command")
FINAL = ("All done.",)
TITLE = ("A short title",)
WORDS = ("The ", "agent ", "reads ", "`calc` ", "and ", "**adds** ", "a ", "line. ")
WORDS_A_PARAGRAPH = 60
FILLERS: Mapping[str, Any] = {"integer": 10000, "number": 10000, "boolean": False, "array": []}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: text in deltas at `rate` a second (0: at once), or tool calls.

    The deltas of a `dated` one are each the nanosecond of its sending.

    A `side` request is one for a title or a summary, which counts as no step.
    """

    step: int
    side: bool = False
    texts: Sequence[str] = ()
    rate: int = 0
    dated: bool = False
    calls: tuple[Call, ...] = ()


def reply(body: Body, directory: Path) -> Reply:
    """The answer to a request in either protocol, for a client that works in `directory`."""
    tools, step = _tools(body), _step(body)
    if not tools:
        return Reply(step=step, side=True, texts=TITLE)
    name = str(body.get("model", "hello")).rpartition("/")[2]
    kind, *words = name.split("-")
    numbers = [int(word) for word in words]
    if kind in {"stream", "paced"}:
        rate = numbers[1] if kind == "paced" else 0
        return Reply(step=step, texts=_deltas(numbers[0]), rate=rate, dated=kind == "paced")
    if kind == "prose":
        return Reply(step=step, texts=_prose(numbers[0]), rate=numbers[1])
    calls = _calls(kind, numbers, step, tools, directory / "target.txt")
    return Reply(step=step, calls=calls, texts=() if calls else FINAL)


def _calls(
    kind: str, numbers: Sequence[int], step: int, tools: Tools, target: Path
) -> tuple[Call, ...]:
    """The calls of a step; none when the script is at its end."""
    match kind, numbers, step:
        case "steps", [count], _ if step < count:
            return (_shell(tools, f"true {step}"),)
        case "par", [count], 0:
            return tuple(_shell(tools, f"true {number}") for number in range(count))
        case "edit", _, 0:
            return (_read(tools, target),)
        case "edit", _, 1:
            return (_edit(tools, target),)
        case _:
            return ()


def expected_requests(model: str) -> int | None:
    """How many main requests a run of a script makes, None where a client may choose."""
    kind, _, number = model.partition("-")
    match kind:
        case "steps":
            return int(number) + 1
        case "par":
            return 2
        case "edit":
            return None
        case _:
            return 1


def _deltas(count: int) -> list[str]:
    return [f"w{number % 1000:03d} " for number in range(count)]


def _prose(count: int) -> list[str]:
    return [
        "\n\n" if number % WORDS_A_PARAGRAPH == 0 else WORDS[number % len(WORDS)]
        for number in range(1, count + 1)
    ]


def _tools(body: Body) -> Tools:
    found = {}
    for each in body.get("tools") or ():
        definition = each.get("function") or each
        name = definition.get("name") or definition.get("type")
        found[str(name)] = definition.get("parameters") or {}
    return found


def _step(body: Body) -> int:
    """The answers with tool calls since the user spoke last."""
    step, calling = 0, False
    for item in body.get("input") or body.get("messages") or ():
        called = item.get("type") in {"function_call", "custom_tool_call", "local_shell_call"}
        if item.get("role") == "user":
            step = 0
        elif item.get("tool_calls") or (called and not calling):
            step += 1
        calling = called
    return step


def _pick(tools: Tools, names: Sequence[str]) -> str:
    return next((name for name in names if name in tools), "")


def _shell(tools: Tools, command: str) -> Call:
    name = _pick(tools, SHELL_TOOLS) or "bash"
    schema = tools.get(name, {})
    properties = schema.get("properties") or {"command": {}}
    key = "cmd" if "cmd" in properties else "command"
    listed = properties[key].get("type") == "array"
    arguments: dict[str, Any] = {key: ["bash", "-c", command] if listed else command}
    for required in schema.get("required") or ():
        kind = properties.get(required, {}).get("type")
        arguments.setdefault(required, FILLERS.get(kind, "no-op"))
    return name, arguments


def _read(tools: Tools, path: Path) -> Call:
    name = _pick(tools, READ_TOOLS)
    if not name:
        return _shell(tools, "cat target.txt")
    return name, {_path_key(tools[name]): str(path)}


def _edit(tools: Tools, path: Path) -> Call:
    name = _pick(tools, EDIT_TOOLS)
    if not name:
        return _shell(tools, "sed -i s/alpha/beta/ target.txt")
    arguments: dict[str, Any] = {_path_key(tools[name]): str(path)}
    for key in tools[name].get("properties") or {}:
        spelt = key.lower().replace("_", "")
        if spelt in {"oldstring", "oldtext"}:
            arguments[key] = "alpha"
        elif spelt in {"newstring", "newtext"}:
            arguments[key] = "beta"
        elif spelt == "edits":
            arguments[key] = [{"oldText": "alpha", "newText": "beta"}]
    return name, arguments


def _path_key(schema: Mapping[str, Any]) -> str:
    known = ("filePath", "file_path", "path", "absolute_path")
    return _pick(schema.get("properties") or {}, known) or "path"
