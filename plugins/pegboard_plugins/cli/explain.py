"""`pegboard explain`: the permission requests of a command or tool call, and their outcome."""

import json
import sys
from collections.abc import Iterator
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pegboard.cli import open_app, run_async
from pegboard.display import escape_controls
from pegboard.unstable import exposed, serving
from pegboard_plugins.cli.explained import commands, listed, paths_outside, place, spoken_rules
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.render import Line, open_screen
from pegboard_plugins.shared.frontend import explain as explained

if TYPE_CHECKING:
    from pegboard.schema.session import PermissionRequest, Rule, Verdict
    from pegboard_plugins.shared.frontend import Explanation


@click.command()
@click.argument("command", required=False)
@click.option("--tool", "tool_id", help="The tool to explain instead of the shell.")
@click.option("--args", "arguments", help="The tool's arguments, as JSON.")
@click.option("--agent", help="The agent to use instead of the default one.")
@format_option("text")
@click.pass_obj
def explain(  # noqa: PLR0913, PLR0917 - a command's options
    directory: Path,
    command: str | None,
    tool_id: str | None,
    arguments: str | None,
    agent: str | None,
    style: Literal["text", "json"],
) -> None:
    """Show what COMMAND would do, and which rule decides.

    The output names the rules and plugins that decide, and the verdict. Nothing is run. For
    another tool, use --tool NAME --args JSON.
    """
    args = _arguments(command, arguments)
    found = run_async(_explain_call(directory, tool_id, args, agent))
    if style == "json":
        click.echo(as_json(facts(found), indent=2))
        return

    screen = open_screen(sys.stdout, sys.stdout, environ)
    for line in lines(found):
        screen.line(line)
    screen.close()


def _arguments(command: str | None, arguments: str | None) -> dict[str, Any]:
    if (command is None) == (arguments is None):
        raise click.UsageError("give a COMMAND, or --tool NAME with --args JSON")
    if command is not None:
        return {"command": command}
    try:
        found = json.loads(arguments or "")
    except ValueError as error:
        raise click.UsageError(f"--args is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise click.UsageError("--args must be a JSON object")
    return found


async def _explain_call(
    directory: Path, tool_id: str | None, args: dict[str, Any], agent: str | None
) -> "Explanation":
    """Open the project, and explain a call of the named tool or of the shell tool."""
    async with open_app(directory) as app:
        shell = serving(app.tools.values(), "shell")
        if tool_id is None and shell is None:
            raise click.UsageError("no tool here runs shell commands; name one with --tool")
        name = tool_id or (shell.id if shell else "")
        return await explained(app, name, args, agent=agent)


def facts(found: "Explanation") -> dict[str, Any]:
    """Return the explanation as JSON: `commands`, `paths_outside`, `opaque`, `rules`, `verdict`."""
    permissions = {request.id: request.permission for request in found.requests}
    return {
        "tool": found.tool,
        "commands": list(commands(found.requests)),
        "paths_outside": list(paths_outside(found.session, found.requests)),
        "opaque": list(listed(found.requests, "unclear")),
        "advice": list(listed(found.requests, "advice")),
        "place": place(found.requests),
        "line": found.line,
        "requests": [
            {
                "permission": request.permission,
                "patterns": list(request.patterns),
                "always": list(request.always),
                "verdict": verdict.action,
                "by": verdict.decider,
                "rule": _rule(verdict.rule),
            }
            for request, verdict in zip(found.requests, found.verdicts, strict=True)
        ],
        "rules": [
            {
                "permission": spoken.permission,
                "pattern": spoken.pattern,
                "source": spoken.source,
                "rule": _rule(spoken.rule),
            }
            for request in found.requests
            for spoken in spoken_rules(found.session, request)
        ],
        "plugins": [
            {
                "plugin": opinion.plugin,
                "permission": permissions[opinion.request_id],
                "action": opinion.verdict.action,
                "reason": opinion.verdict.reason,
            }
            for opinion in found.opinions
        ],
        **_decision(found.verdict),
        "headless": found.headless.action,
        "modes": found.modes,
        "sandbox": found.sandbox,
        "to_allow": list(_to_add(found)),
    }


def _decision(verdict: "Verdict") -> dict[str, Any]:
    return {
        "verdict": verdict.action,
        "by": verdict.decider,
        "reason": verdict.reason,
        "firm": verdict.firm,
    }


def _rule(rule: "Rule | None") -> list[str] | None:
    return None if rule is None else [rule.permission, rule.pattern, rule.action]


def lines(found: "Explanation") -> "Iterator[Line]":
    """Yield the lines of the explanation, with control characters escaped."""
    for request in found.requests:
        yield Line(head=escape_controls(request.permission), text="", style="tool")
        yield from _request_lines(found, request)
    if found.line:
        yield Line(head="in the command", text="", style="dim")
        yield from (Line(text=exposed(each), indent=1) for each in found.line.split("\n"))
    if outside := paths_outside(found.session, found.requests):
        yield Line(head="outside", text=escape_controls(", ".join(outside)), style="warning")
    if unclear := listed(found.requests, "unclear"):
        yield Line(head="unclear", text=", ".join(unclear), style="warning")
        told = (*place(found.requests).split("\n"), *listed(found.requests, "advice"))
        yield from (Line(text=escape_controls(text), indent=1) for text in told)
    yield Line(
        head=f"{found.verdict.action}:", text=escape_controls(found.verdict.reason), style="tool"
    )
    if found.headless.action != found.verdict.action:
        text = f"{found.headless.action} without a terminal to ask on"
        yield Line(text=text, style="dim", indent=1)
    if len(set(found.modes.values())) > 1:
        text = " · ".join(f"{name}: {action}" for name, action in found.modes.items())
        yield Line(head="modes", text=text, style="dim")
    if found.sandbox:
        yield Line(head="sandbox", text=escape_controls(found.sandbox), style="dim")
    yield from _ways(found)


def _ways(found: "Explanation") -> "Iterator[Line]":
    """Yield lines that tell the user how to allow the tool call."""
    # The last rule that fits counts, and the user has one that asks.
    behind = ", after your other rules" if found.verdict.decider == "config" else ""
    for text in _to_add(found):
        yield Line(text=f"to allow it: {escape_controls(text)}{behind}", style="dim", indent=1)
    if found.verdict.action == "ask" and not found.to_allow:
        often = " every time" if found.verdict.firm else ""
        text = f"no rule of yours can allow it: {found.verdict.decider} wants it asked{often}"
        yield Line(text=escape_controls(text), style="dim", indent=1)


def _request_lines(found: "Explanation", request: "PermissionRequest") -> "Iterator[Line]":

    rules = spoken_rules(found.session, request)
    every = [rule for each in found.requests for rule in spoken_rules(found.session, each)]
    is_lone = len(every) == 1 and found.verdict.rule == every[0].rule  # the last line names it
    for pattern in request.patterns:
        yield Line(text=exposed(pattern).replace("\n", "\\n"), indent=1)
        for spoken in rules:
            if spoken.pattern == pattern and not is_lone:
                rule = spoken.rule
                text = f'{rule.action}: rule {rule.permission} "{rule.pattern}" ({spoken.source})'
                yield Line(text=escape_controls(text), style="dim", indent=2)
    verdict = found.verdicts[found.requests.index(request)]
    if verdict.source == "approvals" and verdict.reason != found.verdict.reason:
        yield Line(text=escape_controls(f"allow: {verdict.reason}"), style="dim", indent=1)
    named = [each.rule for each in rules]
    for opinion in found.opinions:
        is_said = opinion.verdict.reason == found.verdict.reason or opinion.verdict.rule in named
        if opinion.request_id == request.id and not is_said:
            reason = opinion.verdict.reason.removeprefix(f"plugin {opinion.plugin}: ")
            text = f"{opinion.plugin}: {opinion.verdict.action}: {reason or opinion.verdict.action}"
            yield Line(text=escape_controls(text), style="dim", indent=1)


def _to_add(found: "Explanation") -> "Iterator[str]":
    """Yield the lines for `pegboard.toml` that would allow the tool call."""
    for rule in found.to_allow:
        key, name = json.dumps(rule.permission), json.dumps(rule.pattern, ensure_ascii=False)
        yield f'permission.{key}.{name} = "allow"'
