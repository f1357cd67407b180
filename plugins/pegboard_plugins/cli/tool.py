"""`pegboard tool`: the tools of this project, and calls of them without a model."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pegboard import AppOptions, Prompt, ToolError, hookimpl
from pegboard.cli import Exit, Group, open_app, run_async
from pegboard.display import escape_controls
from pegboard.plugins import nearest_names
from pegboard.schema.event import PermissionAsked, QuestionAsked
from pegboard.schema.part import Completed, Failed, ToolPart
from pegboard.schema.wire import to_json
from pegboard.testing import ScriptedModel
from pegboard.unstable import exposure_of, within_tool
from pegboard_plugins.cli.dialogs import Asker
from pegboard_plugins.cli.explain import facts
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.render import open_screen
from pegboard_plugins.cli.tables import table
from pegboard_plugins.shared.frontend import LocalFeed
from pegboard_plugins.shared.frontend import explain as explain_call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pegboard import App, Tool
    from pegboard.providers import Provider

TITLE = "pegboard tool call"
_STYLE = format_option("text")


@click.group(cls=Group)
def tool() -> None:
    """List and call the tools of this project."""


@tool.command("list")
@_STYLE
@click.pass_obj
def list_tools(directory: Path, style: Literal["text", "json"]) -> None:
    """List the tools and their plugins."""
    rows = run_async(_list_tools(directory))
    if style == "json":
        click.echo(as_json(rows, indent=2))
        return

    headers = ("tool", "plugin", "permission", "effect", "exposure", "description")
    click.echo(table(headers, [[row[name] for name in headers] for row in rows]), nl=False)


@tool.command()
@click.argument("name")
@_STYLE
@click.pass_obj
def schema(directory: Path, name: str, style: Literal["text", "json"]) -> None:
    """Show the description and the arguments of the tool NAME.

    The output is what a model reads if the tool is offered, after the changes of all plugins.
    """
    found = run_async(_schema(directory, name))
    if style == "json":
        click.echo(as_json(found, indent=2))
        return

    click.echo(escape_controls(f"{found['name']} (permission {found['permission']})\n"))
    click.echo(escape_controls(found["description"]))
    click.echo(f"\n{as_json(found['parameters'], indent=2)}")


@tool.command()
@click.argument("name")
@click.argument("arguments", default="{}", metavar="JSON")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what would be asked and the verdict, without running the tool.",
)
@click.option("--keep", is_flag=True, help="Keep the session of the call.")
@click.option("--agent", help="The agent to use instead of the default one.")
@format_option("text", default="json")
@click.pass_obj
def call(  # noqa: PLR0913, PLR0917 - a command's options
    directory: Path,
    name: str,
    arguments: str,
    dry_run: bool,
    keep: bool,
    agent: str | None,
    style: Literal["text", "json"],
) -> None:
    """Call the tool NAME with JSON arguments, as a model would.

    No model is asked. As in a run, the call needs permission and runs in the sandbox. Its result is
    printed as JSON, or with --format text as a model reads it.
    """
    args = _object(arguments)
    ordered = _Call(directory, name, args, agent, keep=keep)
    found, code = run_async(ordered.explain() if dry_run else ordered.make_call())
    shown = found.get("output", found.get("error", "")) if style == "text" else None
    click.echo(as_json(found, indent=2) if shown is None or dry_run else shown)
    if code is not Exit.DONE:
        raise SystemExit(code)


def _object(written: str) -> dict[str, Any]:
    try:
        found = json.loads(written)
    except ValueError as error:
        text = f"""the arguments are not JSON, as '{{"name": "value"}}' is: {error}"""
        raise click.UsageError(text) from error
    if not isinstance(found, dict):
        raise click.UsageError("the arguments must be a JSON object")
    return found


async def _list_tools(directory: Path) -> list[dict[str, str]]:

    async with open_app(directory) as app:
        owners = {name: info.name for info in app.plugins.infos for name in info.tools}
        return [
            {
                "tool": each.id,
                "plugin": owners.get(each.id, ""),
                "permission": each.permission,
                "effect": each.effect,
                "exposure": _exposure(app, each),
                "description": each.description.strip().partition("\n")[0],
            }
            for each in sorted(app.tools.values(), key=lambda each: each.id)
        ]


def _exposure(app: "App", tool: "Tool") -> str:
    """Return how the default agent's model reaches a tool, with the setting that decides this."""
    word, key = exposure_of(tool, app.config, app.default_agent().name)
    own = "automatic" if tool.id in app.hooks.sources else "direct"
    return f"{word} ({key})" if key else word or own


async def _schema(directory: Path, name: str) -> dict[str, Any]:

    async with open_app(directory) as app:
        tool = _find_tool(app, name)
        found = next((each for each in await app.policy.offered() if each.name == tool.id), tool)
        return {
            "name": tool.id,
            "description": found.description,
            "permission": found.permission,
            "parameters": dict(found.parameters),
        }


def _find_tool(app: "App", name: str) -> "Tool":
    """Return the tool of this name.

    :raises click.UsageError: when there is no such tool, with the nearest names.
    """
    if (found := app.tools.get(name)) is not None:
        return found
    near = ", ".join(nearest_names(name, app.tools))
    hint = f"; did you mean {near}?" if near else "; `pegboard tool list` shows those there are"
    if app.untrusted:
        hint = f"{hint}; this project's own are there after `pegboard trust allow`"
    absent = [each for each in app.plugins.infos if each.error and not each.blocked]
    lines = (escape_controls(f"\nleft out: {each.name}: {each.error}") for each in absent)
    raise click.UsageError(f"there is no tool {name!r}{hint}{''.join(lines)}")


class _Call:
    """A tool call that the user makes; a scripted model requests the call."""

    def __init__(
        self, directory: Path, name: str, args: dict[str, Any], agent: str | None, *, keep: bool
    ) -> None:
        self._directory, self._name, self._args, self._agent = directory, name, args, agent
        self._keep = keep

    async def explain(self) -> tuple[dict[str, Any], Exit]:
        """Return the call's permission requests, and the exit code of a run without a user."""
        async with open_app(self._directory) as app:
            own = self._own_arguments(app)
            found = await explain_call(app, self._name, own, agent=self._agent)
            told = {"arguments": own, **facts(found)}
            return told, Exit.DENIED if found.headless.action == "deny" else Exit.DONE

    async def make_call(self) -> tuple[dict[str, Any], Exit]:
        """Run the tool call; return its result, and the exit code for the process."""
        async with self._opened() as app:
            own = self._own_arguments(app)
            found = await explain_call(app, self._name, own, agent=self._agent)
            if found.verdict.action == "deny":
                denied = {"error": found.verdict.reason, "denied": True}
                return {"tool": self._name, "input": own, **denied}, Exit.DENIED
            session = await app.create_session(title=TITLE, agent=self._agent)
            try:
                part = await self._part(app, session.id)
            finally:
                if not self._keep:
                    await app.delete_session(session.id)
        return _call_result(part, session.id if self._keep else None)

    def _own_arguments(self, app: "App") -> dict[str, Any]:
        """Return the validated arguments, with names of other agents' tools replaced by the tool's.

        :raises click.UsageError: when the tool rejects the arguments.
        """
        found = _find_tool(app, self._name)
        own = dict(found.own_names(self._args))
        try:
            found.validate(own)
        except ToolError as error:
            raise click.UsageError(str(error)) from error
        return own

    async def _part(self, app: "App", session_id: str) -> "ToolPart":

        model = ScriptedModel([]).models()[0]
        text = f"{TITLE} {self._name} {as_json(self._args)}"
        asking = asyncio.create_task(_ask_user(app))
        try:
            name = f"{model.provider_id}/{model.id}"
            await app.prompt(session_id, Prompt(text, agent=self._agent, model=name))
        finally:
            asking.cancel()
            await asyncio.wait({asking})  # it ends at its next await
        turns = await app.list_turns(session_id)
        parts = (part for turn in turns for part in turn.parts)
        return next(part for part in parts if isinstance(part, ToolPart))

    @asynccontextmanager
    async def _opened(self) -> "AsyncIterator[App]":
        """Open the project with a scripted model; a user at a terminal is asked for permission."""
        script = ScriptedModel([(self._name, self._args), "Done."])
        interactive = sys.stdin.isatty() and sys.stderr.isatty() and not within_tool()
        options = AppOptions(plugins=(Scripted(script),), interactive=interactive)
        async with open_app(self._directory, options) as app:
            yield app


class Scripted:
    """A plugin that registers a scripted model's provider."""

    def __init__(self, script: "Provider") -> None:

        self.register_providers = hookimpl(lambda: (script,))


async def _ask_user(app: "App") -> None:
    """Ask the user each permission request and question at the terminal."""
    screen = open_screen(sys.stderr, sys.stderr, environ)
    asker = Asker(LocalFeed(app), screen, sys.stdin)
    async with app.subscribe() as events:
        async for event in events:
            if isinstance(asked := event.properties, PermissionAsked | QuestionAsked):
                await asker.ask(asked.request)


def _call_result(part: "ToolPart", session_id: str | None) -> tuple[dict[str, Any], Exit]:
    """Return the result of an ended call, and the exit code."""
    kept = {"session": session_id} if session_id else {}
    match part.state:
        case Completed(output=output, title=title, metadata=metadata, attachments=attached):
            files = [to_json(each) for each in attached]
            shown = [
                {name: file.get(name) for name in ("mime", "filename", "url")} for file in files
            ]
            result = {"output": output, "title": title, "metadata": metadata, "attachments": shown}
            return {"tool": part.tool, "input": part.state.input, **result, **kept}, Exit.DONE
        case Failed(error=error, metadata=facts):
            denied = bool((facts or {}).get("denied"))
            advice = {"advice": facts["advice"]} if facts and facts.get("advice") else {}
            failed = {"error": error, "denied": denied, **advice}
            told = {"tool": part.tool, "input": part.state.input, **failed, **kept}
            return told, Exit.DENIED if denied else Exit.FAILED
    raise AssertionError(f"the call has not ended: {part.state}")
