"""The plugin `toolsearch`: requests omit the schemas of some tools until a search finds them.

If all schemas exceed a tenth of the model's context window or 8,000 tokens, the tools of plugins
and servers are deferred, the largest source first, until the remaining schemas fit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pegboard import Plugin, SessionView, Tool, ToolContext, ToolResult, evolve, hookimpl, tool
from pegboard.providers import ModelRequest, ToolDefinition
from pegboard.schema.message import Turn
from pegboard.schema.model import Model
from pegboard.schema.part import Completed, ToolPart

SHARE = 10
"""All schemas together may take one part in so many of the window."""
MOST_TOKENS = 8_000
WINDOW_TOKENS = 200_000
"""The window of a model whose own is not known."""
TOKEN_BYTES = 4
MOST_FOUND = 20
"""Tools that stay in the requests after they were found; the oldest go first."""
MOST_HITS = 20
GATEWAY_LIMIT_S = 3600.0
"""The time limit of a call through the gateway; the tool that is called has its own, too."""
LISTED_LETTERS = 120
"""Of the names of a source's tools that the system prompt lists."""
_FOUND = "found"
"""The key of a search's metadata with the ids of the tools that it found."""


class ToolSearchOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of the plugin; with `gateway`, the model calls found tools by `tool_call`."""

    gateway: bool = False


options = ToolSearchOptions


@tool(effect="reads", requires=False)
async def tool_search(context: ToolContext, query: str, limit: int = 5) -> ToolResult:
    """Find tools that are not listed, and get the schemas of their arguments.

    Args:
        query: words of what the tool should do, a tool's exact id, or `select:ID,ID`.
        limit: the most tools to return, at most 20.
    """
    from pegboard_plugins.toolsearch.ranking import ranked  # few sessions search

    own = (tool_search.id, tool_call.id)
    tools = [each for each in context.offered if each.name not in own]
    far = [*deferred(tools, context.session.model).values()]
    hits = ranked(query, far)[: min(max(limit, 1), MOST_HITS)]
    if not hits:
        sources = "\n".join(_sources(far))
        return ToolResult(output=f"No tool fits {query!r}. There are tools of:\n{sources}")
    return ToolResult(
        output="\n\n".join(map(_describe, hits)),
        title=", ".join(each.name for each in hits),
        metadata={_FOUND: [each.name for each in hits]},
    )


@tool(effect="delegates", requires=False, timeout_s=GATEWAY_LIMIT_S)
async def tool_call(context: ToolContext, id: str, arguments: dict[str, Any]) -> ToolResult:  # noqa: A002 - the model's word
    """Call a tool that `tool_search` has found.

    Args:
        id: the id of the tool.
        arguments: its arguments, by the schema that the search gave.
    """
    await context.call_tool(id, arguments)
    return ToolResult(output="Done; the answer stands with the call.", title=id)


def _describe(definition: ToolDefinition) -> str:
    line = definition.description.strip().partition("\n")[0]
    schema = msgspec.json.encode(definition.parameters).decode()
    return f"{definition.name}: {line}\n{schema}"


def _is_far(definition: ToolDefinition) -> bool:
    """Return whether requests may omit the tool: a deferred tool, or by default a plugin's tool."""
    return definition.exposure == "deferred" or (
        definition.exposure is None and bool(definition.source)
    )


@hookimpl
async def register_tools(plugin: Plugin) -> Sequence[Tool]:
    """Return `tool_search`, and also `tool_call` if the plugin's option `gateway` is on."""
    return (tool_search, tool_call) if plugin.options.gateway else (tool_search,)


@hookimpl
async def chat_params(session: SessionView, request: ModelRequest) -> ModelRequest | None:
    """Omit schemas of deferred tools that no search has found; list the tools in the prompt."""
    tools = {each.name: each for each in request.tools}
    search, gateway = tools.pop(tool_search.id, None), tools.pop(tool_call.id, None)
    if search is None:
        return None
    far = deferred([*tools.values()], request.model)
    if not far:
        return evolve(request, tools=tuple(tools.values()))
    near = [each for each in tools.values() if each.name not in far]
    found = [name for name in _found_tools(session.turns) if name in far and gateway is None]
    last = (gateway,) if gateway is not None else tuple(far[name] for name in found)
    way = f"called with `{tool_call.id}`" if gateway is not None else "then called like any other"
    return evolve(
        request,
        tools=(*near, search, *last),
        deferred=tuple(each for each in far.values() if each.name not in found),
        system=(*request.system, _note(far.values(), way)),
    )


def deferred(tools: Sequence[ToolDefinition], model: Model) -> Mapping[str, ToolDefinition]:
    """Return the tools to omit: deferred tools, and whole sources until the other tools fit."""
    window = model.limit.context or WINDOW_TOKENS
    far = {each.name: each for each in tools if each.exposure == "deferred"}
    sizes = {each.name: _tokens(each) for each in tools if each.name not in far}
    automatic = [each for each in tools if each.name in sizes and _is_far(each)]
    by_source: Counter[str] = Counter()
    for each in automatic:
        by_source[each.source] += sizes[each.name]
    total = sum(sizes.values())
    for source, size in sorted(by_source.items(), key=lambda each: (-each[1], each[0])):
        if total <= min(window / SHARE, MOST_TOKENS):
            break
        far |= {each.name: each for each in automatic if each.source == source}
        total -= size
    return far


def _tokens(definition: ToolDefinition) -> int:
    """Return a tool's approximate size in a request, in tokens."""
    sent = (definition.name, definition.description, definition.parameters)
    return len(msgspec.json.encode(sent)) // TOKEN_BYTES


def _found_tools(turns: Iterable[Turn]) -> Sequence[str]:
    """Return the names of the last 20 tools that searches found in the session, the newest last."""
    names = dict.fromkeys(reversed([*_search_results(turns)]))
    return [*names][:MOST_FOUND][::-1]


def _search_results(turns: Iterable[Turn]) -> Iterator[str]:
    for turn in turns:
        for part in turn.parts:
            if not (isinstance(part, ToolPart) and part.tool == tool_search.id):
                continue
            if isinstance(part.state, Completed):
                yield from part.state.metadata.get(_FOUND, ())


def _note(tools: Iterable[ToolDefinition], way: str) -> str:
    """Return the section of the system prompt about tools that `tool_search` finds.

    The section stays the same when a search finds tools, so that the prompt cache holds.
    """
    return "\n".join(
        (f"More tools can be found with `{tool_search.id}` and {way}:", *_sources(tools))
    )


def _sources(tools: Iterable[ToolDefinition]) -> list[str]:
    sources: dict[str, list[ToolDefinition]] = {}
    for each in tools:
        sources.setdefault(each.source or "Pegboard", []).append(each)
    return sorted(_source_line(name, found) for name, found in sources.items())


def _source_line(name: str, tools: Sequence[ToolDefinition]) -> str:
    about = f"{name} ({len(tools)} tools)"
    if description := next(filter(None, (each.source_description for each in tools)), ""):
        about = f"{about}: {description}"
    return f"- {about}: {_join_names([each.name for each in tools])}"


def _join_names(names: Sequence[str]) -> str:
    text = ", ".join(sorted(names))
    if len(text) <= LISTED_LETTERS:
        return text
    return f"{text[:LISTED_LETTERS].rpartition(', ')[0]}, ..."
