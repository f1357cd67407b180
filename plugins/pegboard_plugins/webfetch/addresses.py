"""The addresses that a fetch may connect to, directly or through a proxy."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

from pegboard import ToolError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_LOOKUP_S = 5.0
"""Where a proxy resolves names, this machine may have no DNS that answers."""
_OWN_DOMAINS = frozenset(
    ("internal", "local", "localhost", "arpa", "lan", "home", "corp", "intranet", "private")
)
"""Top-level domains that lead to no host of the public internet (RFC 6761, 6762, 8375; ICANN)."""


async def system_addresses(host: str, port: int) -> tuple[str, ...]:
    """Return the host's addresses in the system's order of preference.

    :raises OSError: when the host has no address.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


async def checked_addresses(
    host: str, port: int, *, resolve: Resolve, allowed: Callable[[str], bool]
) -> tuple[str, ...]:
    """Return the IP addresses of a host, after checking that each one is allowed.

    The caller must connect to these addresses and not resolve the name again: DNS may then give
    addresses without a check.

    :raises ToolError: when the host has no address, or an address that is not allowed.
    """
    try:
        found = tuple(await resolve(host, port))
    except (OSError, UnicodeError) as error:
        raise ToolError(f"{host} cannot be resolved: {error}") from error
    refused = [each for each in found if not allowed(each)]
    if refused:
        raise _private(host, f"has the address {refused[0]}, which is")
    if not found:
        raise ToolError(f"{host} has no address")
    return found


async def addresses_for_proxy(
    host: str, port: int, *, resolve: Resolve, allowed: Callable[[str], bool]
) -> tuple[str, ...]:
    """Return the host itself after a check, since the proxy resolves the name again.

    If this machine can resolve the host, all its addresses must be allowed. Otherwise the name must
    have the form of a public internet name.

    :raises ToolError: when the host is not allowed.
    """
    try:
        async with asyncio.timeout(_LOOKUP_S):
            found = tuple(await resolve(host, port))
    except (OSError, UnicodeError):  # of which a TimeoutError is one
        found = ()
    if found:

        async def known(_: str, __: int) -> tuple[str, ...]:
            return found

        await checked_addresses(host, port, resolve=known, allowed=allowed)
        return (host,)
    *above, last = host.lower().rstrip(".").split(".")
    is_name = above and last not in _OWN_DOMAINS and not last[:1].isdigit() and ":" not in host
    if not is_name and not allowed(host):
        raise _private(host, "is")
    return (host,)


def _private(host: str, what: str) -> ToolError:
    return ToolError(
        f"{host} {what} not on the public internet; the user can allow it with"
        " plugins.webfetch.options.allow_private"
    )
