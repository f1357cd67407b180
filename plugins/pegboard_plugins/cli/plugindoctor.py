"""`pegboard plugins doctor`: the problems of plugins, and their import times."""

import ast
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, NamedTuple

import click
import msgspec

from pegboard import App
from pegboard.cli import Exit, run_async
from pegboard.display import escape_controls
from pegboard.unstable import PegboardDeprecationWarning, exposure_of
from pegboard_plugins.cli.distributions import COMMANDS, OWN, entries
from pegboard_plugins.cli.importcost import ImportCost, import_costs
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.skippedtools import skipped_tool_files
from pegboard_plugins.shared.frontend import surroundings, untrusted_warnings

if TYPE_CHECKING:
    from pegboard.app import PluginInfo

SLOW_MS = 100
"""The import time above which a plugin counts as slow."""
SHOWN = 3
HEAVY_TOKENS = 2_000
"""The number of tokens per request above which a source of tools gets a warning."""
TOKEN_BYTES = 4


class PluginFault(NamedTuple):
    """A fault of a plugin."""

    kind: str
    plugin: str
    text: str


@click.command()
@format_option("text")
@click.pass_obj
def doctor(directory: Path, style: Literal["text", "json"]) -> None:
    """Check the plugins of this project for problems.

    The exit code is 8 if there are problems. Third-party plugins are imported again in a separate
    process to measure their import time.
    """
    faults, costs, warnings = run_async(_faults(directory))
    if style == "json":
        rows = [each._asdict() for each in faults]
        imports = [each._asdict() for each in costs]
        found = {"faults": rows, "imports": imports, "warnings": warnings}
        click.echo(as_json(found, indent=2))
    else:
        for warning in warnings:
            click.echo(escape_controls(f"warning: {warning}"), err=True)
        for kind, plugin, text in faults:
            click.echo(escape_controls(f"{kind}: {plugin}: {text}"))
        for cost in costs:
            click.echo(escape_controls(f"{cost.ms:.0f} ms: {cost.plugin} imports {cost.module}"))
        nothing = "no plugin has a fault" if warnings else "nothing is wrong"
        count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
        click.echo(count if faults else nothing)
    if faults:
        raise SystemExit(Exit.PLUGIN)


async def _faults(
    directory: Path,
) -> tuple[list[PluginFault], tuple[ImportCost, ...], tuple[str, ...]]:
    import warnings

    with warnings.catch_warnings(record=True) as old:
        warnings.simplefilter("always", PegboardDeprecationWarning)
        async with App.open(directory) as app:
            known = [*_doubled(app), *_empty(app), *_tools(app)]
            folders = (app.workspace.worktree, app.workspace.directory)
            around = (
                *untrusted_warnings(app),
                *surroundings(app),
                *skipped_tool_files(folders),
                *_heavy(app),
            )
    costs = await asyncio.to_thread(import_costs, sorted(set(_imported(app))))
    faults = [
        *(PluginFault(each.kind, each.plugin, each.text) for each in app.plugins.problems),
        *failed_hooks(app),
        *known,
        *_commands(),
        *_slow(costs),
    ]
    going = (
        f"{each.filename}:{each.lineno}: {each.message}"
        for each in old
        if issubclass(each.category, PegboardDeprecationWarning)
    )
    return list(dict.fromkeys(faults)), costs[:SHOWN], (*around, *dict.fromkeys(going))


def failed_hooks(app: "App") -> Iterator[PluginFault]:
    """Yield the failures of hooks so far; some occur only when the App is closed."""
    for each in app.failures:
        yield PluginFault("hook", each.plugin, each.message.removeprefix(f"plugin {each.plugin}: "))


def _imported(app: "App") -> Iterator[str]:
    """Yield the modules of installed plugins that were imported without an error."""
    for each in app.plugins.infos:
        if each.origin == "installed" and not each.blocked and not each.error:
            yield each.location.partition(":")[0].strip()


def _foreign(app: "App") -> "Iterator[PluginInfo]":
    return (each for each in app.plugins.infos if each.origin not in ("builtin", "embedded"))


def _empty(app: "App") -> Iterator[PluginFault]:
    told = {each.plugin for each in app.plugins.problems}
    for each in _foreign(app):
        if each.hooks or each.tools or each.blocked or each.error or each.name in told:
            continue
        if not _is_shared(Path(each.location)):
            text = "it has no hooks; is @hookimpl missing, or register_tools for its tools?"
            yield PluginFault("empty", each.name, text)


def _is_shared(file: Path) -> bool:
    """Return whether another file in the same folder imports `file`, as a part of a plugin."""
    beside = (path for path in file.parent.glob("*.py") if path != file)
    return file.suffix == ".py" and any(file.stem in _names(path) for path in beside)


def _names(file: Path) -> Iterator[str]:
    """Yield the top-level names of the modules that a Python file imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (each.name.partition(".")[0] for each in node.names)


def _module(location: str) -> ModuleType | None:
    """Return the module of an entry point, or the module made from a file."""
    made = (each for each in tuple(sys.modules.values()) if vars(each).get("__file__") == location)
    return sys.modules.get(location) or next(made, None)


def _tools(app: "App") -> Iterator[PluginFault]:
    """Yield the faults of foreign plugins' tools that would confuse a model."""
    from pegboard.testing import check_tools  # `pegboard --help` goes without it

    for each in _foreign(app):
        own = [app.tools[name] for name in each.tools if name in app.tools]
        for finding in check_tools(own, calls=False):
            if finding.rule != "parameter":
                yield PluginFault(
                    finding.rule, each.name, f"the tool {finding.subject}: {finding.text}"
                )


def _heavy(app: "App") -> Iterator[str]:
    """Yield a line for each source of tools with schemas that take many tokens of each request."""
    agent = app.default_agent().name
    sizes: Counter[str] = Counter()
    for name, source in app.hooks.sources.items():
        if (tool := app.tools.get(name)) is None:
            continue
        if exposure_of(tool, app.config, agent)[0] in (None, "direct"):
            sent = (tool.id, tool.description, tool.parameters)
            sizes[source] += len(msgspec.json.encode(sent)) // TOKEN_BYTES
    for source, tokens in sizes.items():
        if tokens > HEAVY_TOKENS:
            text = f"the tools of {source} take about {tokens:,} tokens of each request"
            yield f'{text}; `[exposure] "{source}_*" = "deferred"` has them found by a search'


def _doubled(app: "App") -> Iterator[PluginFault]:
    """Yield the plugins that have the name of a built-in plugin."""
    infos = app.plugins.infos
    built_in = {each.name for each in infos if each.origin == "builtin" and not each.blocked}
    for each in _foreign(app):
        if each.name in built_in and not each.blocked:
            text = f'a built-in plugin has this name; [plugins."{each.table}"] has its settings'
            yield PluginFault("doubled", each.name, text)


def _commands() -> Iterator[PluginFault]:
    found = entries(COMMANDS)
    own = {each.name for each in found if each.distribution == OWN}
    for each in found:
        if each.name in own and each.distribution != OWN:
            text = f"its command {each.name} is left out: Pegboard has one of this name"
            yield PluginFault("command", each.distribution, text)


def _slow(costs: Sequence[ImportCost]) -> Iterator[PluginFault]:
    for cost in costs:
        if cost.ms > SLOW_MS:
            text = (
                f"its import takes {cost.ms:.0f} ms for {cost.module}, at every start;"
                " import that where it is used"
            )
            yield PluginFault("slow", cost.plugin, text)
