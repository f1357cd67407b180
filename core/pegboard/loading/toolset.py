"""The choice of one tool for each id among the tools of all plugins."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from pegboard.contract import apphooks
from pegboard.contract.plugin import Origin
from pegboard.contract.tools import Tool, checked_id
from pegboard.errors import InvalidInputError
from pegboard.loading.discovery import PluginProblem, attempt, is_marked, is_provider, marked, owned
from pegboard.loading.registrant import Registrant

ORIGINS: tuple[Origin, ...] = ("builtin", "installed", "user", "project", "embedded")
"""Oldest first: a later origin's tool replaces an earlier one's of the same id."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a plugin offers; `place` names the tool's source in messages."""

    by: Registrant
    tool: Tool
    place: str


def bare_tools(each: Registrant) -> Iterator[Offer | PluginProblem]:
    """Yield the tools that a module itself defines, unless the module has `register_tools`.

    In a file `tool/NAME.py`, the tool NAME or `default` gets the id NAME, and a tool `other` gets
    NAME_other. A tool with an explicit `id` keeps the id, as do all tools of other modules.
    """
    if is_marked(each.plugin, apphooks.register_tools.__name__):
        return
    file = each.file
    stem = file.path.stem if file is not None and file.kind == "tool" else None
    of = f"the plugin {each.name}" if stem is None else each.name
    for attribute, tool in owned(each.plugin, is_tool):
        place = f"{of}, {attribute}"
        own = stem if attribute in (stem, "default") else f"{stem}_{attribute}"
        try:
            named = tool if not stem or tool.has_own_id else tool.with_id(own)
        except InvalidInputError as error:
            yield PluginProblem("name", each.name, f"{place}: {error}")
        else:
            yield Offer(by=each, tool=named, place=place)


def is_tool(value: object) -> bool:
    """Return whether the object is a tool."""
    return isinstance(value, Tool)


def emptiness(each: Registrant) -> PluginProblem | None:
    """Return a problem if the plugin has no hook, no tool and no provider.

    A file may be empty, because other files of its folder may import it.
    """
    plugin = each.plugin
    if (
        each.file is not None
        or any(marked(plugin))
        or any(owned(plugin, lambda it: is_tool(it) or is_provider(it)))
    ):
        return None
    text = (
        "it has no hook, no tool and no provider of its own: mark its functions with @hookimpl,"
        " @tool or @provider; what it imports from other modules does not count"
    )
    return PluginProblem("empty", each.name, text)


def toolset(offers: Sequence[Offer]) -> tuple[Mapping[str, Offer], Sequence[PluginProblem]]:
    """Choose one tool for each id, and return the problems with the other tools.

    If plugins of the same origin have tools with the same id, the first tool is chosen and the
    others are problems. A tool of a later origin replaces a tool of an earlier one. If it does not
    set `serves`, it keeps the value of the replaced tool.
    """
    chosen: dict[str, Offer] = {}
    problems: list[PluginProblem] = []
    for offer in sorted(offers, key=lambda each: ORIGINS.index(each.by.origin)):
        earlier = chosen.get(offer.tool.id)
        flaw = _flaw(offer)
        if flaw is None and earlier is not None and earlier.by.origin == offer.by.origin:
            text = (
                f"two tools have the id {offer.tool.id}: {earlier.place} keeps it,"
                f" {offer.place} is left out; rename one of them"
            )
            flaw = PluginProblem("clash", offer.by.name, text)
        if flaw is not None:
            problems.append(flaw)
            continue
        if earlier is not None:
            text = (
                f"the tool {offer.tool.id} of {offer.place} ({offer.by.origin}) replaces that of"
                f" {earlier.place} ({earlier.by.origin})"
            )
            problems.append(PluginProblem("replaced", offer.by.name, text))
            serves = offer.tool.serves or earlier.tool.serves
            offer = Offer(by=offer.by, tool=replace(offer.tool, serves=serves), place=offer.place)  # noqa: PLW2901 - the same offer, and more of it
        chosen[offer.tool.id] = offer
    return chosen, problems


def _flaw(offer: Offer) -> PluginProblem | None:
    """Return the problem because of which a tool cannot be offered, or None without a problem."""
    try:
        checked_id(offer.tool.id)
    except InvalidInputError as error:
        return PluginProblem("name", offer.by.name, f"{offer.place}: {error}")
    described = attempt(lambda: (offer.tool.parameters, offer.tool.description), offer.place)
    if isinstance(described, PluginProblem):
        return PluginProblem("signature", offer.by.name, described.text, described.detail)
    return None
