"""The page of all commands and options, as their help has them."""

import inspect
from collections.abc import Iterator

import click

from pegboard.cli.root import COMMANDS, OWN_DISTRIBUTION, root
from pegboard.loading.discovery import entry_points

HEAD = """# Commands and options

<!-- Written by tests/docs/command_pages.py from the help of the commands. -->

Each command of `pegboard` with its options, as `--help` shows them; `-h` and `--help` are
options of all. What they are good for is on the page of the [command line](cli.md).

"""


def commands_page() -> str:
    """Every command with its usage, its text and its options."""
    return HEAD + "\n".join(_section(path, command) for path, command in commands())


def commands() -> Iterator[tuple[str, click.Command]]:
    """The root, and below it each command of Pegboard's own, by the words that call it."""
    own = (each for each in entry_points(COMMANDS) if each.distribution == OWN_DISTRIBUTION)
    yield "pegboard", root
    for name in sorted(each.name for each in own):
        command = root.get_command(click.Context(root), name)
        assert command is not None
        yield from _below(f"pegboard {name}", command)


def _below(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, each in sorted(command.commands.items()):
            yield from _below(f"{path} {name}", each)


def options(command: click.Command) -> Iterator[click.Option]:
    """What `--help` lists but itself."""
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden:
            yield each


def _section(path: str, command: click.Command) -> str:
    usage = " ".join((path, *command.collect_usage_pieces(click.Context(command))))
    text = inspect.cleandoc(command.help or "")
    rows = [_row(each, click.Context(command)) for each in options(command)]
    table = "\n".join(("", "| option | meaning |", "|---|---|", *rows, "")) if rows else ""
    return f"## {path}\n\n`{usage}`\n\n{text}\n{table}"


def _row(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None
    names, meaning = (" ".join(each.split()).replace("|", "\\|") for each in record)
    return f"| `{names}` | {meaning} |"
