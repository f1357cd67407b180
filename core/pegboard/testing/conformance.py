"""Checks that models can use a tool and that providers accept the tool."""

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from pegboard import Tool
from pegboard.contract.tools import checked_id
from pegboard.errors import InvalidInputError, SignatureError, ToolError
from pegboard.schema.event import PluginFailed
from pegboard.testing.finding import Finding
from pegboard.testing.loneplugin import Settings, lone_plugin
from pegboard.testing.permissionchecks import permission_flaws
from pegboard.testing.samples import fits, samples

# Anthropic's rule for the names of a tool's arguments, the narrowest of those we know.
_PARAMETER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_UNKNOWN = "no_argument_of_this_name"


async def tools_of(
    plugin: object,
    *,
    config: Settings = None,
    options: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> tuple[Tool, ...]:
    """Return the tools that a plugin registers, or that a module of tools contains.

    `config` is the argument of `register_tools`: a `Config`, or a mapping with the keys of a
    `pegboard.toml`. `options` and `secrets` are the plugin's own. If `register_tools` calls hooks
    that the plugin defines, only the plugin itself answers them.

    :raises AssertionError: when the options do not fit, or such a hook fails.
    """
    register = getattr(plugin, "register_tools", None)
    if register is None:
        values = vars(plugin).values() if isinstance(plugin, ModuleType) else ()
        return tuple(value for value in values if isinstance(value, Tool))
    wanted = inspect.signature(register).parameters
    async with lone_plugin(plugin, config, options=options, secrets=secrets) as alone:
        if alone.options:
            raise AssertionError(f"options={{...}}: {'; '.join(alone.options)}")
        given = {
            "config": alone.config,
            "hooks": alone.hooks(_fail),
            "plugin": alone.handle,
        }
        answer = register(**{name: given[name] for name in given if name in wanted})
        return tuple((await answer if inspect.isawaitable(answer) else answer) or ())


def _fail(failure: PluginFailed) -> None:
    raise AssertionError(failure.message)


def check_tools(tools: Iterable[Tool], *, calls: bool = True) -> tuple[Finding, ...]:
    """Return the faults found in tools, or () for faultless tools.

    The rules:

    - id, description, schema: each must be valid and present.
    - name: providers accept the names of all parameters.
    - parameter: each parameter has a description.
    - refuses: wrong arguments are refused.
    - accepts: arguments that fit the schema are accepted.
    - requires: the tool requires its own permission, and does so before it acts.

    A test says `assert check_tools(await tools_of(my_plugin)) == ()`. The function of a tool is
    called only if its `requires` makes a request with `later=True`, to check that the function
    repeats this request. The call runs in a temporary folder, where nothing is permitted. With
    `calls=False` no tool is called.
    """
    return tuple(finding for tool in tools for finding in _check(tool, calls=calls))


def _check(tool: Tool, *, calls: bool) -> Iterator[Finding]:
    for rule, texts in (("id", _id(tool)), ("description", _description(tool))):
        yield from (Finding(subject=tool.id, rule=rule, text=text) for text in texts)
    wrong = list(_schema(tool))
    if wrong:
        yield from (Finding(subject=tool.id, rule="schema", text=text) for text in wrong)
        return
    checks = (
        ("name", _names(tool)),
        ("parameter", _parameters(tool)),
        ("refuses", _refuses(tool)),
        ("accepts", _accepts(tool)),
        ("requires", permission_flaws(tool, calls=calls)),
    )
    for rule, texts in checks:
        yield from (Finding(subject=tool.id, rule=rule, text=text) for text in texts)


def _id(tool: Tool) -> Iterator[str]:
    try:
        checked_id(tool.id)
    except InvalidInputError as error:
        yield str(error)


def _description(tool: Tool) -> Iterator[str]:
    if not tool.description.strip():
        yield "it has no description; write a docstring"


def _schema(tool: Tool) -> Iterator[str]:
    try:
        json.dumps(tool.parameters, allow_nan=False)
        tool.warm()
    except (SignatureError, TypeError, ValueError) as error:
        yield str(error)
        return
    if tool.parameters.get("type") != "object":
        yield "its type must be object"
    for name, schema in tool.parameters.get("properties", {}).items():
        whole = {**schema, "$defs": tool.parameters.get("$defs", {})}
        if "default" in schema and not fits(schema["default"], whole):
            yield f"the default of {name} does not fit its type; a model may well write it"


def _names(tool: Tool) -> Iterator[str]:
    for name in tool.parameters.get("properties", {}):
        if not _PARAMETER.fullmatch(name):
            yield f"{name!r} is refused by providers: 1 to 64 of a-z, A-Z, 0-9, _, . and -"


def _parameters(tool: Tool) -> Iterator[str]:
    for name, schema in tool.parameters.get("properties", {}).items():
        if not schema.get("description", "").strip():
            yield f"{name} has no description; write an entry for it under Args:"


def _refuses(tool: Tool) -> Iterator[str]:
    whole = next(iter(samples(tool.parameters)), None)
    if whole is None:
        return
    for name in tool.parameters.get("required", ()):
        left = {key: value for key, value in whole.items() if key != name}
        if _refusal(tool, left) is None:
            yield f"a call without {name} is let through, and the schema requires it"
    if tool.parameters.get("additionalProperties") is False and not _refusal(
        tool, whole | {_UNKNOWN: 1}
    ):
        yield "an argument that the schema does not know is let through"


def _accepts(tool: Tool) -> Iterator[str]:
    for sample in samples(tool.parameters):
        refusal = _refusal(tool, sample)
        if refusal is not None:
            yield f"{json.dumps(sample)} fits the schema and is refused: {refusal}"


def _refusal(tool: Tool, args: Mapping[str, Any]) -> str | None:
    try:
        tool.validate(args)
    except ToolError as error:
        return str(error)
    return None
