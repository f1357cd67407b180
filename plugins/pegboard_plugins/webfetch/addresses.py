"""The addresses that a fetch may connect to."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

from pegboard import ToolError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


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
