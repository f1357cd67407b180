"""Amounts of money, in whole cents."""


def display(cents: int) -> str:
    """Format an amount for people: 1234 cents are 12.34."""
    return f"{cents // 100}.{cents % 100:02}"


def split(total_cents: int, people: int) -> list[int]:
    """Split an amount between people; the parts add up to the total."""
    share = total_cents // people
    return [share] * people
