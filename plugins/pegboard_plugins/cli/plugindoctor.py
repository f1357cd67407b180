"""`pegboard plugins doctor`: what is wrong with plugins, each thing once, and what they cost."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from pegboard.cli import Exit
from pegboard.embedding import run_async
from pegboard_plugins.cli.distributions import COMMANDS, OWN, Entry, entries, unfit
from pegboard_plugins.cli.importcost import Cost, import_costs
from pegboard_plugins.cli.jsontext import as_json, format_option

if TYPE_CHECKING:
    from pegboard import App
    from pegboard.embedding import PluginInfo

SLOW_MS = 100
"""An import that takes longer is felt at every start."""
SHOWN = 3


class Fault(NamedTuple):
    """What is wrong, with the plugin that it is about."""

    kind: str
    plugin: str
    text: str


@click.command()
@format_option("text")
@click.pass_obj
def doctor(directory: Path, style: Literal["text", "json"]) -> None:
    """Look for what is wrong with the plugins of this project.

    The exit code is 8 if anything is. Foreign plugins are imported once more in a process of their
    own, to see what that costs.
    """
    faults, costs, warnings = run_async(_found(directory))
    if style == "json":
        rows = [each._asdict() for each in faults]
        imports = [each._asdict() for each in costs]
        found = {"faults": rows, "imports": imports, "warnings": warnings}
        click.echo(as_json(found, indent=2))
    else:
        from pegboard.cli import visible

        for warning in warnings:
            click.echo(visible(f"warning: {warning}"), err=True)
        for kind, plugin, text in faults:
            click.echo(visible(f"{kind}: {plugin}: {text}"))
        for cost in costs:
            click.echo(visible(f"{cost.ms:.0f} ms: {cost.plugin} imports {cost.module}"))
        nothing = "no plugin has a fault" if warnings else "nothing is wrong"
        count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
        click.echo(count if faults else nothing)
    if faults:
        raise SystemExit(Exit.PLUGIN)


async def _found(directory: Path) -> tuple[list[Fault], tuple[Cost, ...], tuple[str, ...]]:
    import asyncio

    from pegboard import App
    from pegboard_plugins.cli.opening import surroundings

    installed = await asyncio.to_thread(entries)
    foreign = [each for each in installed if each.distribution != OWN]
    async with await App.open(directory) as app:
        known = _known(app, installed)
        warnings = surroundings(app)
    costs = await asyncio.to_thread(import_costs, sorted({each.module for each in foreign}))
    faults = [
        *(Fault(each.kind, each.plugin, each.text) for each in app.register.problems),
        *(Fault("hook", each.plugin, each.message) for each in app.failures),
        *known,
        *_commands(),
        *_slow(costs),
    ]
    return list(dict.fromkeys(faults)), costs[:SHOWN], warnings


def _known(app: "App", installed: Sequence[Entry]) -> list[Fault]:
    """What is to be seen of plugins beyond what the App tells of them by itself."""
    told = {each.plugin for each in app.register.problems if each.kind != "replaced"}
    packages = (*_doubled(installed), *_versions(installed))
    untold = (each for each in packages if each.plugin not in told)
    return [*untold, *_empty(app), *_unmarked(app), *_tools(app)]


def _foreign(app: "App") -> "Iterator[PluginInfo]":
    return (each for each in app.register.infos if each.origin not in ("builtin", "embedded"))


def _empty(app: "App") -> Iterator[Fault]:
    told = {each.plugin for each in app.register.problems}
    for each in _foreign(app):
        if not (each.hooks or each.tools or each.blocked or each.error or each.name in told):
            text = "it has no hooks; is @hookimpl missing, or register_tools for its tools?"
            yield Fault("empty", each.name, text)


def _unmarked(app: "App") -> Iterator[Fault]:
    from pegboard_testing import unmarked_hooks

    for each in _foreign(app):
        for name in unmarked_hooks(_module(str(each.location))):
            yield Fault("unmarked", each.name, f"the hook {name} is not marked with @hookimpl")


def _module(location: str) -> ModuleType | None:
    """The module of an entry point, or the one that was made of a file."""
    made = (each for each in tuple(sys.modules.values()) if vars(each).get("__file__") == location)
    return sys.modules.get(location) or next(made, None)


def _tools(app: "App") -> Iterator[Fault]:
    """What would trouble a model in the tools of foreign plugins."""
    from pegboard_testing import check_tools

    for each in _foreign(app):
        own = [app.tools[name] for name in each.tools if name in app.tools]
        for finding in check_tools(own):
            if finding.rule != "parameter":
                yield Fault(finding.rule, each.name, f"the tool {finding.subject}: {finding.text}")


def _doubled(installed: Sequence[Entry]) -> Iterator[Fault]:
    for name, times in Counter(each.name for each in installed).items():
        if times > 1:
            owners = ", ".join(each.distribution for each in installed if each.name == name)
            text = f"{times} distributions have a plugin of this name: {owners}"
            yield Fault("doubled", name, text)


def _commands() -> Iterator[Fault]:
    found = entries(COMMANDS)
    own = {each.name for each in found if each.distribution == OWN}
    for each in found:
        if each.name in own and each.distribution != OWN:
            text = f"its command {each.name} is left out: Pegboard has one of this name"
            yield Fault("command", each.distribution, text)


def _versions(installed: Sequence[Entry]) -> Iterator[Fault]:
    from pegboard import __version__

    for each in installed:
        if each.distribution != OWN and (wanted := unfit(each.distribution, __version__)):
            text = f"{each.distribution} requires {wanted}, and this is {__version__}"
            yield Fault("version", each.name, text)


def _slow(costs: Sequence[Cost]) -> Iterator[Fault]:
    for cost in costs:
        if cost.ms > SLOW_MS:
            text = (
                f"its import takes {cost.ms:.0f} ms for {cost.module}, at every start;"
                " import that where it is used"
            )
            yield Fault("slow", cost.plugin, text)
