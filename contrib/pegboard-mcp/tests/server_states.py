"""The states of servers as a client of Pegboard's server sees them."""

import time
from collections.abc import Callable

import httpx

States = dict[str, dict[str, str]]
LIMIT_S = 60


def states_until(client: httpx.Client, condition: Callable[[States], bool]) -> list[States]:
    """Return all states of the servers that were seen until they are as wanted."""
    ends_at = time.monotonic() + LIMIT_S
    seen: list[States] = [client.get("/mcp").json()]
    while not condition(seen[-1]):
        assert time.monotonic() < ends_at, seen[-1]
        time.sleep(0.1)
        seen.append(client.get("/mcp").json())
    return seen
