"""`pegboard plugins`: the loaded plugins, with their origin, load time and problems."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pegboard import App
from pegboard.app import PluginProblem
from pegboard.cli import Group, run_async
from pegboard.display import escape_controls
from pegboard.plugins import nearest_names
from pegboard_plugins.cli.bundle import bundle
from pegboard_plugins.cli.distributions import brought_commands
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.plugindoctor import doctor, failed_hooks
from pegboard_plugins.cli.plugininstall import install, uninstall
from pegboard_plugins.cli.pluginnew import new
from pegboard_plugins.cli.pluginsecret import secret
from pegboard_plugins.cli.pluginswitch import disable, enable, info, state_of
from pegboard_plugins.cli.plugintrace import trace
from pegboard_plugins.cli.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pegboard.app import PluginInfo
    from pegboard_plugins.cli.plugindoctor import PluginFault


@click.group(cls=Group)
def plugins() -> None:
    """List, check, install and create plugins."""


for _command in (bundle, disable, doctor, enable, info, install, new, secret, trace, uninstall):
    plugins.add_command(_command)


@plugins.command("list")
@format_option("table")
@click.option("--hook", help="Only plugins that have this hook, in the order of its calls.")
@click.pass_obj
def list_plugins(directory: Path, style: Literal["table", "json"], hook: str | None) -> None:
    """List the plugins in the order of their hook calls.

    Problems are listed below the table.
    """
    found, problems, order = run_async(_plugins(directory, hook))
    if hook is not None:
        found = tuple(each for name in order for each in found if each.name == name)
        problems = ()
    if style == "json":
        rows = [_facts(plugin) for plugin in found]
        notes = [{"kind": each.kind, "plugin": each.plugin, "text": each.text} for each in problems]
        facts = {"plugins": rows, "problems": notes}
        if hook is None:
            facts["commands"] = [each._asdict() for each in brought_commands()]
        click.echo(as_json(facts, indent=2))
        return

    headers = ("name", "version", "origin", "ms", "state", "hooks", "tools")
    click.echo(table(headers, [_row(plugin) for plugin in found]), nl=False)
    blocked: dict[str, list[str]] = {}
    for plugin in (each for each in found if each.blocked):
        blocked.setdefault(plugin.error, []).append(plugin.name)
    for error, names in blocked.items():
        click.echo(escape_controls(f"blocked: {', '.join(names)}: {error}"), err=True)
    if hook is None:
        for command in brought_commands():
            click.echo(
                escape_controls(f"command: {command.name} ({command.distribution})"), err=True
            )
    for problem in problems:
        click.echo(escape_controls(f"{problem.kind}: {problem.plugin}: {problem.text}"), err=True)


async def _plugins(
    directory: Path, hook: str | None
) -> "tuple[tuple[PluginInfo, ...], tuple[PluginProblem | PluginFault, ...], tuple[str, ...]]":
    """Return the plugins, their problems, and the names of the plugins that implement `hook`.

    These names are in the order in which the hook calls the plugins; without `hook` there are none.

    :raises click.UsageError: when no plugin has the hook.
    """
    async with App.open(directory) as app:
        # What fails while it starts and ends is told, too.
        order = app.hooks.order(hook) if hook is not None else ()
        if hook is not None and not order:
            names = {name for each in app.plugins.infos for name in each.hooks}
            near = ", ".join(nearest_names(hook, names))
            hint = f"; did you mean {near}?" if near else ""
            raise click.UsageError(f"no plugin has a hook {hook!r}{hint}")
    return tuple(app.plugins.infos), (*app.plugins.problems, *failed_hooks(app)), order


def _row(plugin: "PluginInfo") -> tuple[str, ...]:
    return (
        plugin.name,
        plugin.version or "",
        plugin.origin,
        f"{plugin.load_ms:.1f}",
        state_of(plugin),
        ", ".join(plugin.hooks),
        ", ".join([*plugin.tools, *(f"{name} (off until {key})" for name, key in _off(plugin))]),
    )


def _off(plugin: "PluginInfo") -> "Iterator[tuple[str, str]]":
    """Yield each disabled tool of the plugin, with the setting that enables it."""
    yield from (each for each in plugin.switch.items() if each[0] not in plugin.tools)


def _facts(plugin: "PluginInfo") -> dict[str, Any]:
    return {
        "name": plugin.name,
        "version": plugin.version,
        "origin": plugin.origin,
        "location": str(plugin.location),
        "hooks": plugin.hooks,
        "tools": plugin.tools,
        "off": dict(_off(plugin)),
        "loadMs": plugin.load_ms,
        "state": state_of(plugin),
        "error": plugin.error,
    }
