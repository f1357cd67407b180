"""Which addresses a fetch may connect to: those of the public internet, unless all may be."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from pegboard import ToolError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_UNICAST = ip_network("2000::/3")
"""All that is given out of IPv6 (RFC 4291 2.4); what lies beside it means something else."""
_NOT_PUBLIC = (
    ip_network("192.0.0.0/24"),  # in part public to older Pythons; a cloud's metadata (Oracle)
    ip_network("3fff::/20"),  # for documentation (RFC 9637), and public to older Pythons
    ip_network("168.63.129.16/32"),  # public by its number, and yet a cloud's metadata (Azure)
)


async def system_addresses(host: str, port: int) -> tuple[str, ...]:
    """The host's addresses as the system resolves them, in its order of preference.

    :raises OSError: when there are none.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


async def checked_addresses(
    host: str, port: int, *, resolve: Resolve, allowed: Callable[[str], bool]
) -> tuple[str, ...]:
    """The addresses to connect to, none of which may be resolved again.

    :raises ToolError: when the host has none, or one that is not allowed.
    """
    try:
        found = tuple(await resolve(host, port))
    except (OSError, UnicodeError) as error:
        raise ToolError(f"{host} cannot be resolved: {error}") from error
    refused = [each for each in found if not allowed(each)]
    if refused:
        raise ToolError(
            f"{host} has the address {refused[0]}, which is not on the public internet; the user"
            " can allow it with plugins.webfetch.options.allow_private"
        )
    if not found:
        raise ToolError(f"{host} has no address")
    return found


def is_public(address: str) -> bool:
    """Whether an address is on the public internet, by itself and by the one inside it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _embedded(parsed) if isinstance(parsed, IPv6Address) else None
    if inner is not None:
        return is_public(str(inner))
    reserved = any(parsed in network for network in _NOT_PUBLIC) or (
        isinstance(parsed, IPv6Address) and parsed not in _UNICAST
    )
    return parsed.is_global and not parsed.is_multicast and not reserved


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to this one end up at."""
    if any(address in network for network in _NAT64):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.teredo:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour
