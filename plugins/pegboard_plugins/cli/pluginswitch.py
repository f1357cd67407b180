"""`pegboard plugins enable`, `disable` and `info`: commands for one plugin."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec.json import schema

from pegboard.app import UserFolders
from pegboard.cli import Exit, open_app, run_async
from pegboard.display import escape_controls
from pegboard.plugins import nearest_names
from pegboard.unstable import find_plugins, refuse_within_tool
from pegboard_plugins.cli.completing import live
from pegboard_plugins.cli.configkeys import config_file, set_in, source
from pegboard_plugins.cli.distributions import brought_commands, entries
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.settingvalues import leaves, masked
from pegboard_plugins.shared.frontend import update_user_config

if TYPE_CHECKING:
    from pegboard import App
    from pegboard.app import PluginInfo
    from pegboard_plugins.cli.distributions import DistributionEntry

STYLE = format_option("text")


@click.command()
@click.argument("name", shell_complete=live("plugin"))
@STYLE
@click.pass_obj
def enable(directory: Path, name: str, style: Literal["text", "json"]) -> None:
    """Enable the plugin NAME again in all your projects."""
    _switch(directory, name, style, enabled=True)


@click.command()
@click.argument("name", shell_complete=live("plugin"))
@STYLE
@click.pass_obj
def disable(directory: Path, name: str, style: Literal["text", "json"]) -> None:
    """Disable the plugin NAME in all your projects.

    A disabled plugin is not imported.
    """
    _switch(directory, name, style, enabled=False)


@click.command()
@click.argument("name", shell_complete=live("plugin"))
@STYLE
@click.pass_obj
def info(directory: Path, name: str, style: Literal["text", "json"]) -> None:
    """Show origin, contributions and settings of the plugin NAME."""
    found = run_async(_about(directory, name))
    if style == "json":
        click.echo(as_json(found, indent=2))
        return

    for place, plugin in enumerate(found):
        if place:
            click.echo("")
        for key, value in plugin.items():
            for number, each in enumerate(value if isinstance(value, list) else [value]):
                text = each if isinstance(each, str) else as_json(each)
                click.echo(escape_controls(f"{'' if number else key:<14}{text}".rstrip()))


def _switch(directory: Path, name: str, style: Literal["text", "json"], *, enabled: bool) -> None:

    refuse_within_tool(f"pegboard plugins {'enable' if enabled else 'disable'}")
    # No plugin is imported: its import may be what goes wrong.
    (found, *_) = named(run_async(find_plugins(directory)), name)
    file = _write(directory, found.table, enabled=enabled)
    (now, *_) = [p for p in run_async(find_plugins(directory)) if p.table == found.table]
    state, by = not now.blocked, now.error
    if style == "json":
        click.echo(as_json({"name": name, "enabled": state, "file": str(file)}, indent=2))
    else:
        click.echo(f"{name} is {'on' if state else 'off'}: {file}")
    if state is not enabled:
        click.echo(f"another word counts for more: {by}", err=True)
        raise SystemExit(Exit.CONFIG)


def _write(directory: Path, table: str, *, enabled: bool) -> Path:
    """Enable or disable the plugin in the user's configuration, and return the changed file.

    This is the file that already sets the plugin's `enabled`, or else `pegboard.toml`.
    """
    path = ("plugins", table, "enabled")
    folder = UserFolders.of(os.environ).config
    file = config_file(directory, project=False)
    said = source(directory, ".".join(path), file)
    if said and Path(said) != file and Path(said).parent == folder:
        changes = {"plugins": {table: {"enabled": enabled}}}
        return update_user_config(folder, changes, env=os.environ).file
    set_in(directory, file, path, enabled)
    return file


def named(infos: "Sequence[PluginInfo]", name: str) -> "list[PluginInfo]":
    """Return the plugins with this name; a plugin with this table of settings comes first.

    :raises click.UsageError: when there is no such plugin, with the nearest names.
    """
    found = [each for each in infos if name in (each.table, each.name)]
    if not found:
        if bringing := _command(name):
            text = f"{name} is not a plugin but a command of {bringing.distribution}"
            raise click.UsageError(f"{text}; `pegboard plugins uninstall {name}` removes it")
        near = ", ".join(nearest_names(name, {each.name for each in infos}))
        hint = f"; did you mean {near}?" if near else ""
        raise click.UsageError(f"there is no plugin {name!r}{hint}")
    return sorted(found, key=lambda each: each.table != name)


def _command(name: str) -> "DistributionEntry | None":
    """Return another distribution's command of this name, or None if there is none."""
    return next((each for each in brought_commands() if each.name == name), None)


def state_of(plugin: "PluginInfo") -> str:
    """Return the state of the plugin in one word, such as "blocked" or "ok"."""
    if plugin.blocked:
        return "blocked"
    if plugin.error:
        return "failed"
    return "quarantined" if plugin.quarantined else "ok"


async def _about(directory: Path, name: str) -> list[dict[str, Any]]:
    """Return the origin, state, hooks, tools and settings of each plugin with this name."""
    async with open_app(directory) as app:
        found = named(app.plugins.infos, name)
        return [_facts(app, each) for each in found]


def _schema(model: "type[Any] | None") -> dict[str, Any]:
    """Return the JSON Schema of a plugin's options, or {} if the plugin declares none."""
    if model is None:
        return {}
    if hasattr(model, "model_json_schema"):
        found: dict[str, Any] = model.model_json_schema()
        return found

    return schema(model)


def _options(app: "App", plugin: "PluginInfo", table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plugin's options by dotted key, with secrets masked."""
    hidden, prefix = app.plugins.secret_keys, f"plugins.{plugin.table}.options."
    return {key: masked(f"{prefix}{key}", value, hidden) for key, value in leaves(table)}


def _facts(app: "App", plugin: "PluginInfo") -> dict[str, Any]:

    said = app.config.plugins.get(plugin.table)
    owners = [
        f"{each.distribution} {each.version}"
        for each in entries()
        if each.name == plugin.name and each.module == str(plugin.location).partition(":")[0]
    ]
    tools = [app.tools[each] for each in plugin.tools if each in app.tools]
    order = [each.table for each in app.plugins.infos]
    return {
        "name": plugin.name,
        "settings": plugin.table,
        "version": plugin.version,
        "distribution": ", ".join(owners),
        "origin": plugin.origin,
        "location": str(plugin.location),
        "state": state_of(plugin),
        "error": plugin.error,
        "import_ms": round(plugin.load_ms, 1),
        "place": f"{order.index(plugin.table) + 1} of {len(order)}",
        "hooks": list(plugin.hooks),
        "tools": [each.id for each in tools],
        "permissions": sorted({each.permission for each in tools}),
        "rules": [
            f'{rule.permission} "{rule.pattern}" = "{rule.action}"'
            for rule in app.config.permission
            if rule.by == f"plugin {plugin.name}"
        ],
        "options": _options(app, plugin, said.options if said else {}),
        "schema": _schema(plugin.options),
        "problems": [each.text for each in app.plugins.problems if each.plugin == plugin.name],
    }
