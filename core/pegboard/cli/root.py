"""The root of the command line: its options, and subcommands imported when invoked."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pegboard import __version__
from pegboard.cli.exits import interrupt_as_python_does
from pegboard.errors import InvalidInputError, PegboardError, PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pegboard.loading.discovery import EntryPoint

COMMANDS = "pegboard.commands"
"""The entry-point group whose names are the subcommands; a value is `module:attribute`."""
OWN_DISTRIBUTION = "pegboard"
_WHOLE = 1_000
"""Characters of a summary: it goes on in the next line, and is never cut."""
ALONE = "chat"
"""The command that runs if the user names none."""

EPILOG = """\b
Exit codes: 0 done, 1 failed, 2 usage, 3 configuration or trust,
4 provider or credential, 5 permission denied, 6 budget, 7 time limit,
8 plugin, 9 schema, 130 interrupted.
"""


class Group(click.Group):
    """A group of commands that suggests similar names, and shows whole summaries."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        If the first argument contains a space, it is a prompt for the command `chat`.

        :raises click.UsageError: with similar names, when there is no such command.
        """
        if ctx.parent is None and " " in args[0].strip() and self.get_command(ctx, ALONE):
            args = [ALONE, *args]
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(f"{error.message} {self._advice(ctx, args)}", ctx) from error

    def _advice(self, ctx: click.Context, args: list[str]) -> str:
        from pegboard.kit.suggestions import nearest_names  # only a mistake needs it

        if found := nearest_names(args[0], self.list_commands(ctx)):
            return f"Did you mean {' or '.join(found)}?"
        return f"Known are {', '.join(self.list_commands(ctx))}."

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, each with the first sentence of its help."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, each.get_short_help_str(_WHOLE)) for name, each in commands if each]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LazyGroup(Group):
    """A group whose commands are entry points; only the command that the user runs is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted({*super().list_commands(ctx), *_entry_points()})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; options without a command belong to the command `chat`.

        :raises click.NoSuchOption: when a command follows an unknown option.
        """
        try:
            return super().parse_args(ctx, list(args))
        except click.NoSuchOption as error:
            commands = self.list_commands(ctx)
            if ALONE not in commands or not set(commands).isdisjoint(args):
                raise
            place = next(n for n, each in enumerate(args) if each.startswith(error.option_name))
            return super().parse_args(ctx, [*args[:place], ALONE, *args[place:]])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command.

        :raises PluginError: when a command of another distribution fails; its error is the cause.
        """
        try:
            return super().invoke(ctx)
        except (PegboardError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            raise
        except Exception as error:  # the command is foreign code
            entry = _entry_points().get(ctx.invoked_subcommand or "")
            if entry is None or entry.distribution == OWN_DISTRIBUTION:
                raise
            text = f"the command `{entry.name}` raised {type(error).__name__}: {error}"
            raise PluginError(entry.distribution, text) from error

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None.

        :raises PluginError: when it cannot be imported.
        """
        found = _entry_points().get(cmd_name)
        return _load(found) if found else super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing the commands of other distributions."""
        rows = [(name, self._summary(ctx, entry)) for name, entry in _entry_points().items()]
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))
        if left_out := sorted(_left_out()):
            with formatter.section("Left out"):
                formatter.write_dl(left_out)

    def _summary(self, ctx: click.Context, entry: "EntryPoint") -> str:
        if entry.distribution != OWN_DISTRIBUTION:
            from pegboard.loading.discovery import headers

            said = next(headers(entry.metadata, "Summary"), "").rstrip(".")
            return f"{said} (from {entry.distribution} {entry.version})" if said else _origin(entry)
        command = self.get_command(ctx, entry.name)
        return command.get_short_help_str(_WHOLE) if command else ""

    def _advice(self, ctx: click.Context, args: list[str]) -> str:
        from pegboard.kit.suggestions import nearest_names

        if " ".join(args).split()[1:] and not nearest_names(args[0], self.list_commands(ctx)):
            return 'To ask the agent: pegboard run "..."'
        return super()._advice(ctx, args)


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "-C",
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Work in this directory instead of the current one.",
)
@click.version_option(__version__, message="pegboard %(version)s")
@click.pass_context
def root(ctx: click.Context, directory: Path) -> object:
    """Pegboard, a coding agent whose every tool, provider and policy is a plugin.

    Without a command it starts a chat in this terminal and takes the options of `pegboard chat`;
    a prompt in quotes starts the chat.
    """
    interrupt_as_python_does()
    try:
        ctx.obj = directory.resolve()
    except OSError as error:
        raise InvalidInputError(
            f"the current folder is not there any more ({error.strerror}); "
            "go to one that is, or name one with -C"
        ) from error
    alone = root.get_command(ctx, ALONE) if ctx.invoked_subcommand is None else None
    return None if alone is None else ctx.invoke(alone)


def _entry_points() -> "dict[str, EntryPoint]":
    """Return the commands by name; Pegboard's own come first, then other distributions'."""
    from pegboard.loading.discovery import entry_points

    found: dict[str, EntryPoint] = {}
    points = entry_points(COMMANDS)
    for point in sorted(points, key=lambda point: point.distribution != OWN_DISTRIBUTION):
        found.setdefault(point.name, point)
    return found


def _left_out() -> "Iterator[tuple[str, str]]":
    """Yield the commands that are left out because their name is taken, each with the reason."""
    from pegboard.loading.discovery import entry_points

    found = _entry_points()
    for point in entry_points(COMMANDS):
        first = found[point.name].distribution
        if point.distribution != first:
            owner = "Pegboard" if first == OWN_DISTRIBUTION else first
            yield point.name, f"{_origin(point)} {owner} has a command of this name."


def _origin(entry: "EntryPoint") -> str:
    return f"From {entry.distribution} {entry.version}."


def _load(entry: "EntryPoint") -> click.Command:
    from pegboard.loading.discovery import PluginProblem, load_entry_point

    found = load_entry_point(entry)
    if isinstance(found, click.Command):
        return found
    reason = found.text if isinstance(found, PluginProblem) else "it is not a click command"
    raise PluginError(entry.distribution, f"the command `{entry.name}`: {entry.value}: {reason}")
