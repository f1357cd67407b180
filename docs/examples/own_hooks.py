"""Hooks of its own: a tool that explains words, which other plugins bring.

`@hookspec` marks the specification: its kind says how answers combine, its annotation is what an
answer must be, and the same annotations type the call.
"""

from collections.abc import Callable, Sequence

from pegboard import HookCalls, Tool, hookimpl, hookspec, tool
from pegboard.schema.config import Config


@hookspec("collect")
def register_terms(config: Config) -> Sequence[str] | None:
    """Words that the project gives a meaning of its own, each with that meaning."""


@hookimpl
def register_hooks() -> Sequence[Callable[..., object]]:
    """The hook that this plugin brings."""
    return (register_terms,)


@hookimpl
async def register_tools(config: Config, hooks: HookCalls) -> Sequence[Tool]:
    """The tool, over what all plugins have answered."""
    terms = [answer.value for answer in await hooks.collect(register_terms, config=config)]

    @tool(effect="reads")
    def glossary() -> str:
        """What the project's own words mean."""
        return "\n".join(terms)

    return (glossary,)
