"""The findings of the checks for plugin authors: each names a broken rule and what is wrong."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

LIMIT_S = 20.0
"""How long one rule of a suite may take to be looked at."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A broken rule; `subject` names the tool, hook or provider that breaks the rule."""

    subject: str
    rule: str
    text: str


class BrokenRuleError(Exception):
    """An error for a broken rule; the error's text describes what is wrong."""


def must(holds: object, text: str) -> None:
    """Raise an error unless a rule holds.

    :raises BrokenRuleError: when the rule is broken.
    """
    if not holds:
        raise BrokenRuleError(text)


Rule = Callable[[], Awaitable[None]]


async def broken(subject: str, rules: Mapping[str, Rule]) -> tuple[Finding, ...]:
    """Return the broken rules; a rule is broken if it raises an error or takes more than 20 s."""
    found = [
        Finding(subject=subject, rule=name, text=text)
        for name, rule in rules.items()
        if (text := await _flaw(rule))
    ]
    return tuple(found)


async def _flaw(rule: Rule) -> str:
    try:
        async with asyncio.timeout(LIMIT_S):
            await rule()
    except BrokenRuleError as error:
        return str(error)
    except TimeoutError:
        return f"it does not end within {LIMIT_S:g} s"
    except Exception as error:  # noqa: BLE001 - what is checked is foreign code
        return f"it raises {type(error).__name__}: {error}"
    return ""
