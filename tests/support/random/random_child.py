"""A process of random operations on sessions that others work with, too; run by tests only.

`random_child.py <folder> <nap>` reads one line of JSON from stdin: the sessions by name and the
operations. Each line that it prints is a fact for the ledger of its parent.
"""

import asyncio
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).parents[2]))

from support.models.played import opened
from support.random.random_model import Payment
from support.random.random_operations import Actor, Deed, Ledger, Operation
from support.random.random_world import rest, setup


class TellingLedger(Ledger):
    """Tells each fact to the parent, before anybody else hears of it."""

    def note(self, deed: Deed) -> None:
        tell("deed", asdict(deed))
        super().note(deed)

    def named(self, name: str, session_id: str) -> None:
        tell("named", [name, session_id])
        super().named(name, session_id)

    def paid(self, payment: Payment) -> None:
        tell("paid", asdict(payment))
        super().paid(payment)


def tell(kind: str, facts: Any) -> None:
    """A line on stdout, at once and in one piece."""
    os.write(1, f"{json.dumps([kind, facts])}\n".encode())


async def main(folder: str, nap: str) -> None:
    """Do the operations, wait until all has come to rest, and end."""
    sessions, operations = json.loads(sys.stdin.readline())
    ledger = TellingLedger()
    ledger.sessions |= sessions
    provider, plugins, options = setup(ledger.paid, nap)
    async with opened(Path(folder), provider, *plugins, **options) as app:
        tell("open", None)
        await Actor(app, ledger).all([Operation(**each) for each in operations])
        await rest(app)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
