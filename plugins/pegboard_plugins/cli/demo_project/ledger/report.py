"""The amounts that people owe, as lines of text."""

from collections.abc import Mapping, Sequence

from ledger.money import display, split


def owed(expenses: Mapping[str, int], people: Sequence[str]) -> dict[str, int]:
    """Return the cents that each person owes for all expenses together."""
    shares = split(sum(expenses.values()), len(people))
    return dict(zip(people, shares, strict=True))


def report(expenses: Mapping[str, int], people: Sequence[str]) -> str:
    """Return one line for each person, with the amount at the end."""
    lines = [f"{name}: {display(cents)}" for name, cents in owed(expenses, people).items()]
    return "\n".join(lines)
