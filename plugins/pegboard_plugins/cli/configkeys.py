"""`pegboard config get|set|unset|edit`: single keys of a config file, and the file itself."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pegboard import InvalidInputError, PegboardError
from pegboard.app import UserFolders
from pegboard.cli import run_async
from pegboard.display import escape_controls
from pegboard.errors import ConfigError
from pegboard.plugins import nearest_names
from pegboard.unstable import load_config, open_workspace, refuse_within_tool
from pegboard_plugins.cli.completing import live, setting_value
from pegboard_plugins.cli.jsontext import as_json
from pegboard_plugins.cli.settingvalues import masked, settings_of, source_of
from pegboard_plugins.shared.frontend import write_config

if TYPE_CHECKING:
    from pegboard import App

NAME = "pegboard.toml"
_PROJECT = click.option(
    "--project", is_flag=True, help="Change the project's file instead of your own."
)


@click.command("get")
@click.argument("key", shell_complete=live("setting"))
@click.pass_obj
def get_key(directory: Path, key: str) -> None:
    """Print the value of KEY, such as model or budget.run.usd."""
    path = parts_of(key)
    found = run_async(settings_of(directory))
    inside = {name: value for name, value, _ in found if parts_of(name)[: len(path)] == path}
    if not inside:
        near = nearest_names(key, [name for name, _, _ in found])
        raise InvalidInputError(
            f"{key} is not set" + (f"; did you mean {near[0]}?" if near else "")
        )
    whole = inside.get(key)
    click.echo(
        escape_controls(
            as_json(masked(key, whole) if len(inside) == 1 and key in inside else inside)
        )
    )


@click.command("set")
@click.argument("key", shell_complete=live("setting"))
@click.argument("value", shell_complete=setting_value)
@_PROJECT
@click.pass_obj
def set_key(directory: Path, key: str, value: str, *, project: bool) -> None:
    """Set KEY to VALUE in your configuration.

    VALUE is a TOML value such as 2.5, true or ["a", "b"]; anything else is a string. An invalid
    value is not written. Comments and all other keys stay as they are.
    """
    _change(directory, key, value_of(value), project=project)


@click.command("unset")
@click.argument("key", shell_complete=live("setting"))
@_PROJECT
@click.pass_obj
def unset_key(directory: Path, key: str, *, project: bool) -> None:
    """Remove KEY from your configuration."""
    _change(directory, key, None, project=project)


@click.command("edit")
@_PROJECT
@click.pass_obj
def edit_file(directory: Path, *, project: bool) -> None:
    """Open your configuration in $VISUAL or $EDITOR.

    Invalid changes are reported and not saved.
    """
    refuse_within_tool("pegboard config edit")
    file = config_file(directory, project=project)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    before = _read(file)
    try:
        text = click.edit(before, extension=".toml")
    except click.ClickException as error:
        raise InvalidInputError(
            f"{error.message}; set EDITOR, or change {file} yourself"
        ) from error
    if text is None or text == before:
        click.echo("nothing was changed", err=True)
        return
    write_settings(directory, file, text)
    click.echo(f"written: {escape_controls(str(file))}", err=True)


def parts_of(key: str) -> tuple[str, ...]:
    """Split a dotted TOML key into its names.

    :raises InvalidInputError: when the text is not a key.
    """
    try:
        value: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError as error:
        text = f'{key!r} is not a key: write it as in TOML, such as permission."git push *"'
        raise InvalidInputError(text) from error
    path = []
    while isinstance(value, dict):
        [(name, value)] = value.items()
        path.append(name)
    return tuple(path)


def value_of(text: str) -> object:
    """Parse a text as a TOML value; text that is not TOML is a string."""
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if len(found) == 1 else text


def changed(text: str, path: tuple[str, ...], value: object) -> str:
    """Return the TOML text with the value set at `path`, or removed for None; comments stay.

    A table without remaining values and comments is removed. A permission that is a plain action,
    such as `bash = "ask"`, first becomes the table `{"*" = "ask"}` if the path continues below it.

    :raises InvalidInputError: when a name on the path is no table, or the key to remove is not set.
    """
    import tomlkit  # 15 ms that only these commands cost

    document = tomlkit.parse(text)
    table: Any = document
    tables = [table]
    for depth, name in enumerate(path[:-1], 1):
        is_inline = isinstance(table, tomlkit.items.InlineTable)
        new = tomlkit.inline_table() if is_inline else tomlkit.table(is_super_table=True)
        there = table.get(name)
        if there is None and value is not None:
            table[name] = new
        elif isinstance(there, str) and value is not None and "permission" in path[:depth][-2:]:
            table[name] = new if is_inline or depth == 1 else tomlkit.inline_table()
            table[name]["*"] = there
        table = table.get(name)
        if not isinstance(table, Mapping):
            way = f"; `pegboard config unset {'.'.join(path[:depth])}` makes room for one"
            raise InvalidInputError(
                f"{'.'.join(path)}: {name} is not a table there{way if name in tables[-1] else ''}"
            )
        tables.append(table)
    if value is not None:
        table[path[-1]] = value
    elif path[-1] in table:
        del table[path[-1]]
        for parent, name, inner in reversed([*zip(tables, path, tables[1:], strict=False)]):
            if inner or inner.as_string().strip("{} \t\r\n"):
                break
            del parent[name]
    else:
        raise InvalidInputError(f"{'.'.join(path)} is not set there")
    return tomlkit.dumps(document)


def config_file(directory: Path, *, project: bool) -> Path:
    """Return the user's `pegboard.toml`, or with `project` that of the project.

    A project's `.pegboard/pegboard.toml` is preferred to `pegboard.toml` in the root.
    """
    if not project:
        return UserFolders.of(os.environ).config / NAME

    root = open_workspace(directory).worktree
    inner = root / ".pegboard" / NAME
    return inner if inner.is_file() else root / NAME


def _change(directory: Path, key: str, value: object, *, project: bool) -> None:
    refuse_within_tool("pegboard config set")
    file, path = config_file(directory, project=project), parts_of(key)
    set_in(directory, file, path, value)
    click.echo(f"written: {escape_controls(str(file))}", err=True)
    counts = source(directory, ".".join(path), file)
    if counts and Path(counts) != file:
        click.echo(escape_controls(f"{counts} sets {'.'.join(path)}, too, and counts"), err=True)


def set_in(directory: Path, file: Path, path: tuple[str, ...], value: object) -> None:
    """Set the value at `path` in the TOML file, or remove it for None.

    :raises InvalidInputError: when the configuration would not be valid; nothing is written.
    """
    before = _read(file)
    try:
        text = changed(before, path, value)
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{file} is not valid TOML: {error}") from error
    write_settings(directory, file, text)
    if not text.strip():
        file.unlink()  # an empty file looks like one that was damaged


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8") if file.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file} cannot be read: {error}") from error


def write_settings(directory: Path, file: Path, text: str) -> None:
    """Write the configuration text to the file, unless a value in it is invalid.

    Invalid are settings, options of plugins, and the names of unknown modes or themes.

    :raises InvalidInputError: with the invalid settings; nothing is changed.
    """
    has_names = "options" in text or "permission_mode" in text
    before = run_async(_flaws(directory)) if has_names else frozenset()
    edit = write_config(file, text)
    try:
        run_async(_source(directory, "", file))
        flaws = run_async(_flaws(directory)) - before if has_names else ()
    except ConfigError as error:
        edit.undo()
        raise InvalidInputError(f"{error}; nothing was changed") from error
    if flaws:
        edit.undo()
        raise InvalidInputError(f"{'; '.join(sorted(flaws))}; nothing was changed")


async def _flaws(directory: Path) -> frozenset[str]:
    """Return messages about invalid plugin options and unknown modes and themes.

    The result is empty if the project cannot be opened.
    """
    from pegboard import App

    try:
        async with App.open(directory) as app:
            options = [each.text for each in app.plugins.problems if each.kind == "options"]
            return frozenset([*options, *await _unknown_names(app)])
    except PegboardError:
        return frozenset()


async def _unknown_names(app: "App") -> tuple[str, ...]:
    """Return a line for each setting with an unknown mode or theme."""
    # The values of other settings need none of these.
    from pegboard_plugins.chat.hookspecs import register_themes
    from pegboard_plugins.chat.themes import AUTO
    from pegboard_plugins.shared.frontend import MODES

    chat = app.config.plugins.get("chat")
    themes = [each.value.name for each in await app.hooks.collect(register_themes)]
    named = (
        ("permission_mode", app.config.permission_mode, MODES),
        ("plugins.chat.options.theme", chat and chat.options.get("theme"), [AUTO, *themes]),
    )
    return tuple(
        f"{key}: {name} is unknown; known are {', '.join(known)}"
        for key, name, known in named
        if isinstance(name, str) and name not in known
    )


def source(directory: Path, key: str, changed_file: Path) -> str:
    """Return the file that sets the key in the current configuration, or "".

    `changed_file` is the file that was just changed.

    :raises ConfigError: when `changed_file` is invalid.
    """
    return run_async(_source(directory, key, changed_file))


async def _source(directory: Path, key: str, changed_file: Path) -> str:
    """Return the file that sets the key, or ""; the project's files count as trusted.

    :raises ConfigError: when `changed_file` is invalid; another invalid file gives "".
    """
    try:
        loaded = await load_config(
            open_workspace(directory),
            config_dir=UserFolders.of(os.environ).config,
            env=os.environ,
            overrides=None,
            trusted=True,
        )
    except ConfigError as error:
        if error.file not in (None, changed_file):
            return ""
        raise
    return source_of(key, loaded.sources) if key in loaded.sources else ""


COMMANDS = (get_key, set_key, unset_key, edit_file)
