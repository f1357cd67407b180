"""`pegboard plugins secret`: secrets that only one plugin can read."""

import os
import re
import sys
from pathlib import Path

import click

from pegboard import InvalidInputError
from pegboard.app import UserFolders
from pegboard.cli import Group, run_async
from pegboard.plugins import nearest_names
from pegboard.unstable import find_plugins
from pegboard_plugins.cli.completing import live
from pegboard_plugins.cli.pluginswitch import named
from pegboard_plugins.shared.frontend import kept_names, store_secret

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@click.group(cls=Group)
def secret() -> None:
    """Save, list and remove the secrets of plugins."""


@secret.command("set")
@click.argument("plugin", shell_complete=live("plugin"))
@click.argument("key")
@click.pass_obj
def set_secret(directory: Path, plugin: str, key: str) -> None:
    """Save the secret KEY of PLUGIN.

    The secret is read from the terminal without echo, or from a pipe.
    """
    places, plugin = _find_plugin(directory, plugin, key)
    store_secret(places, plugin, key, _read_secret(plugin, key))
    click.echo(f"{plugin} has the secret {key}")


@secret.command("unset")
@click.argument("plugin", shell_complete=live("plugin"))
@click.argument("key")
def unset_secret(plugin: str, key: str) -> None:
    """Remove the secret KEY of PLUGIN, if there is one."""
    places = _places()
    plugin, names = _stored_secrets(places, plugin)
    if key not in names:
        near = ", ".join(nearest_names(key, names)) or ", ".join(names)
        raise InvalidInputError(
            f"no secret {key} of {plugin} is saved" + (f"; did you mean {near}?" if near else "")
        )
    store_secret(places, plugin, key, None)
    click.echo(f"{key} of {plugin} is forgotten")


@secret.command("list")
@click.argument("plugin", shell_complete=live("plugin"))
def list_secrets(plugin: str) -> None:
    """List the names of the saved secrets of PLUGIN."""
    _, names = _stored_secrets(_places(), plugin)
    for name in names:
        click.echo(name)


def _stored_secrets(places: "UserFolders", plugin: str) -> tuple[str, tuple[str, ...]]:
    """Return a plugin's name and the names of its saved secrets.

    For `DISTRIBUTION/PLUGIN` without secrets, use the secrets of `PLUGIN` instead.
    """
    if names := kept_names(places, plugin):
        return plugin, names
    own = plugin.rpartition("/")[2]
    return own, kept_names(places, own)


def _find_plugin(directory: Path, plugin: str, key: str) -> "tuple[UserFolders, str]":
    """Check the secret's name; return the user's folders and the plugin's name."""
    if not _NAME.fullmatch(key):
        raise InvalidInputError(f"{key!r} is not a name of a secret: letters, digits, _, . and -")

    return _places(), named(run_async(find_plugins(directory)), plugin)[0].name


def _places() -> "UserFolders":

    return UserFolders.of(os.environ)


def _read_secret(plugin: str, key: str) -> str:
    if sys.stdin.isatty():
        text = click.prompt(f"{key} of {plugin} (hidden)", hide_input=True, err=True)
    else:
        text = sys.stdin.read()
    text = str(text).removesuffix("\n")
    if not text:
        raise InvalidInputError(f"{key} of {plugin} is empty: type it, or send it through a pipe")
    return text
