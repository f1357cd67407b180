"""The tools of all plugins under the ids that the model sees: names, origins, replacements."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType

import msgspec

from pegboard.contract.plugin import Origin
from pegboard.contract.tools import Tool, checked_id
from pegboard.errors import InvalidInputError
from pegboard.loading.discovery import Problem, attempt
from pegboard.loading.registrant import Registrant

ORIGINS: tuple[Origin, ...] = ("builtin", "installed", "user", "project", "embedded")
"""Oldest first: a later origin's tool replaces an earlier one's of the same id."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a plugin offers; `place` is the file and function that it comes from."""

    by: Registrant
    tool: Tool
    place: str


def tools_of_file(each: Registrant) -> Iterator[Offer | Problem]:
    """The tools of a file: NAME or `default` in `tool/NAME.py` is NAME, any other NAME_other.

    A tool that was given an `id` keeps it. What the file imports is none of its tools.
    """
    file, module = each.file, each.plugin
    if file is None or file.kind != "tool" or not isinstance(module, ModuleType):
        return
    for attribute, tool in _own_tools(module):
        place = f"{file.name}, {attribute}"
        try:
            named = tool if tool.has_own_id else tool.renamed(_id(file.path.stem, attribute))
        except InvalidInputError as error:
            yield Problem("name", file.name, f"{place}: {error}")
        else:
            yield Offer(by=each, tool=named, place=place)


def toolset(offers: Sequence[Offer]) -> tuple[Mapping[str, Offer], Sequence[Problem]]:
    """The offers that count by id, and what is wrong with the others.

    Within an origin the first offer of an id counts, later ones clash.
    What takes the place of another origin's tool serves as that one did.
    """
    chosen: dict[str, Offer] = {}
    problems: list[Problem] = []
    for offer in sorted(offers, key=lambda each: ORIGINS.index(each.by.origin)):
        earlier = chosen.get(offer.tool.id)
        flaw = _flaw(offer)
        if flaw is None and earlier is not None and earlier.by.origin == offer.by.origin:
            text = (
                f"two tools have the id {offer.tool.id}: {earlier.place} keeps it,"
                f" {offer.place} is left out; rename one of them"
            )
            flaw = Problem("clash", offer.by.name, text)
        if flaw is not None:
            problems.append(flaw)
            continue
        if earlier is not None:
            text = (
                f"the tool {offer.tool.id} of {offer.place} ({offer.by.origin}) replaces that of"
                f" {earlier.place} ({earlier.by.origin})"
            )
            problems.append(Problem("replaced", offer.by.name, text))
            serves = offer.tool.serves or earlier.tool.serves
            offer = Offer(by=offer.by, tool=replace(offer.tool, serves=serves), place=offer.place)  # noqa: PLW2901 - the same offer, and more of it
        chosen[offer.tool.id] = offer
    return chosen, problems


def _flaw(offer: Offer) -> Problem | None:
    """Why the tool cannot be offered at all."""
    try:
        checked_id(offer.tool.id)
    except InvalidInputError as error:
        return Problem("name", offer.by.name, f"{offer.place}: {error}")
    described = attempt(lambda: (offer.tool.parameters, offer.tool.description), offer.place)
    if isinstance(described, Problem):
        return Problem("signature", offer.by.name, described.text, described.detail)
    return None


def _id(stem: str, attribute: str) -> str:
    return stem if attribute in (stem, "default") else f"{stem}_{attribute}"


def _own_tools(module: ModuleType) -> Iterator[tuple[str, Tool]]:
    """The module's tools by name, each once, without those that belong to another module."""
    seen: set[int] = set()
    for name, value in tuple(vars(module).items()):
        if not isinstance(value, Tool) or id(value) in seen:
            continue
        if getattr(value, "__module__", None) == module.__name__:
            seen.add(id(value))
            yield name, value
