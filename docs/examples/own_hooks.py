"""Hooks of its own: a tool that explains words, which other plugins bring.

`@hookspec` marks the specification: its kind says how answers combine, its annotation is what an
answer must be, and the same annotations type the call.
"""

from collections.abc import Callable, Sequence

from pegboard import HookCalls, Tool, hookimpl, hookspec, tool
from pegboard.schema.config import Config


@hookspec("collect")
def register_terms(config: Config) -> Sequence[str] | None:
    """Return words that the project gives a meaning of its own, each with that meaning."""


@hookimpl
def register_hooks() -> Sequence[Callable[..., object]]:
    """Return the hook that this plugin brings."""
    return (register_terms,)


@hookimpl
async def register_tools(config: Config, hooks: HookCalls) -> Sequence[Tool]:
    """Return the tool, over the answers of all plugins."""
    terms = [answer.value for answer in await hooks.collect(register_terms, config=config)]

    @tool(effect="reads")
    def glossary() -> str:
        """Return the meanings of the project's own words."""
        return "\n".join(terms)

    return (glossary,)
