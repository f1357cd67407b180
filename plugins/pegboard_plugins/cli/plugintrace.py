"""`pegboard plugins trace`: what each plugin changes in one turn, and how long each hook takes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pegboard import App, AppOptions, Prompt
from pegboard.cli import run_async
from pegboard.display import escape_controls
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.tables import table
from pegboard_plugins.shared.frontend import begin_trace, trace_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_ADDED = "+"
_HEADS = ("+++", "---", "@@")
SYSTEM = "chat_system_transform"
_OWN = "embedded:Scripted:"
"""The beginning of the key of the plugin that provides the script."""


@click.command()
@click.argument("prompt", default="hello")
@click.option("--agent", help="The agent to use instead of the default one.")
@format_option("text")
@click.pass_obj
def trace(directory: Path, prompt: str, agent: str | None, style: Literal["text", "json"]) -> None:
    """Send PROMPT through all plugins and show what each one does.

    A script answers instead of a model. The output has the lines of the system prompt with the
    plugins that wrote them, each hook that changed something, and the time of each. A second prompt
    shows which plugin changes the beginning of a request, which a provider caches.
    """
    found = run_async(_trace(directory, prompt, agent))
    if style == "json":
        click.echo(as_json(found, indent=2))
        return

    for line in found["system"]:
        click.echo(escape_controls(f"{line['plugin'] or '-'}: {line['text']}"))
    click.echo("")
    for step in found["changes"]:
        click.echo(
            escape_controls(f"{step['hook']}: {step['plugin']} changed it ({step['ms']:.1f} ms)")
        )
    for loss in found["prefix"]:
        click.echo(
            escape_controls(
                f"{loss['hook']}: {loss['plugin']} began the next request in another way, at "
                f"{loss['line']!r}: a provider's cache has {loss['tokens']:,} tokens less"
            )
        )
    click.echo("")
    names = ("plugin", "hook", "calls", "failures", "ms", "max_ms")
    rows = [[_format_value(row[name]) for name in names] for row in found["timings"]]
    click.echo(table(names, rows), nl=False)


def _format_value(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


async def _trace(directory: Path, prompt: str, agent: str | None) -> dict[str, Any]:
    # The other commands of `pegboard plugins` make no call.
    from pegboard.testing import ScriptedModel
    from pegboard_plugins.cli.tool import Scripted

    script = ScriptedModel(["Done.", "Done."])
    options = AppOptions(plugins=(Scripted(script),))
    async with App.open(directory, options) as app:
        begin_trace(app)
        session = await app.create_session(title="pegboard plugins trace", agent=agent)
        try:
            model = script.models()[0]
            asked = Prompt(prompt, agent=agent, model=f"{model.provider_id}/{model.id}")
            await app.prompt(session, asked)
            steps, timings = trace_steps(app), _timings(app)
            system = "\n".join(script.requests[-1].system) if script.requests else ""
            again = await app.prompt(session, asked)
        finally:
            await app.delete_session(session.id)
        loss = (getattr(again.info, "metadata", None) or {}).get("prefixLoss")
        return {
            "system": [*_list_authors(system, steps)],
            "changes": [*_changes(steps)],
            "timings": timings,
            "prefix": [loss] if loss else [],
        }


def _list_authors(system: str, steps: "Sequence[Any]") -> "Iterator[dict[str, str]]":
    """Yield each line of the system prompt with the plugin that wrote it, or "" if none did."""
    writers: dict[str, str] = {}
    for step in steps:
        if step.hook == SYSTEM:
            lines = (line for line in step.diff.splitlines() if not line.startswith(_HEADS))
            writers |= {line[1:]: step.plugin for line in lines if line.startswith(_ADDED)}
    yield from ({"plugin": writers.get(line, ""), "text": line} for line in system.splitlines())


def _changes(steps: "Sequence[Any]") -> "Iterator[dict[str, Any]]":
    for step in steps:
        if step.before != step.after:
            facts = {"before": step.before, "after": step.after, "diff": step.diff}
            yield {"hook": step.hook, "plugin": step.plugin, "ms": step.elapsed_ms, **facts}


def _timings(app: "App") -> list[dict[str, Any]]:
    """Return the times of each plugin's hooks, the longest first.

    The plugin that answers instead of a model is left out.
    """
    timed = (each for each in app.hooks.timings() if not each.plugin.startswith(_OWN))
    found = sorted(timed, key=lambda each: each.total_ms, reverse=True)
    return [
        {
            "plugin": each.plugin.split(":")[1] if each.plugin.count(":") > 1 else each.plugin,
            "hook": each.hook,
            "calls": each.calls,
            "failures": each.failures,
            "ms": each.total_ms,
            "max_ms": each.max_ms,
        }
        for each in found
    ]
