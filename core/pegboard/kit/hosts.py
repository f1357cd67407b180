"""Patterns and lists of hosts: matching, intersection, and the names of this machine."""

import re
from typing import TYPE_CHECKING

import msgspec

from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

Network = bool | tuple[str, ...]
"""The open part of the network: all, none, or the hosts of a list."""
KEY = "sandbox_network"
WEB_PORTS = (80, 443)
LONGEST_NAME = 253
"""RFC 1035 2.3.4, without the dot at the end."""
# Texts: compiling them takes a millisecond of the start, and few have a list.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"
# Resolvers take `127.1`, `2130706433` and `0x7f.1` for addresses: none of them is a name.
_NUMBER_AT_THE_END = r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)"
_BRACKETED = r"\[([^\[\]]*)\](?::(.*))?"
_PORT = r"[1-9][0-9]{0,4}"
_HIGHEST_PORT = 65535


class HostPattern(msgspec.Struct, frozen=True):
    """A pattern for a host and its port.

    If `below` is set, it matches all subdomains of the host at any depth, but not the host itself.
    Without a `port`, the ports 80 and 443 match.
    """

    host: str
    below: bool = False
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return f"{'*.' if self.below else ''}{host}{port}"

    def allows(self, host: str, port: int) -> bool:
        """Return whether the pattern matches this host (in the form of `known_host`) and port."""
        if port != self.port if self.port else port not in WEB_PORTS:
            return False
        return host.endswith(f".{self.host}") if self.below else host == self.host

    def overlap(self, other: "HostPattern") -> "HostPattern | None":
        """Return the pattern of the hosts that both patterns match, or None for no such hosts."""
        narrow, wide = sorted((self, other), key=lambda each: (each.below, -len(each.host)))
        fits = narrow == msgspec.structs.replace(wide, port=narrow.port) or (
            wide.below and narrow.host.endswith(f".{wide.host}")
        )
        port = self.port or other.port
        differ = self.port != other.port and bool(self.port and other.port)
        beside = self.port != other.port and port not in WEB_PORTS
        if not fits or differ or beside:
            return None
        return msgspec.structs.replace(narrow, port=port)


def host_pattern(text: str) -> HostPattern:
    """Parse a pattern of hosts in the configuration.

    :raises ConfigError: when it is invalid.
    """
    try:
        return _pattern(text)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is no host: {error}; it takes a name, `*.` and a name, or an IP address,"
            ' and may end in a port: "pypi.org", "*.pypi.org", "127.0.0.1:8080"',
            key=KEY,
        ) from error


def _pattern(text: str) -> HostPattern:
    if text == "*":
        raise ValueError("all hosts are `true`")
    if any(each in text for each in "/@?#\\"):
        raise ValueError("it has a scheme, a path or a user")
    below = text.startswith("*.")
    host, port = split_port(text[2:] if below else text)
    known = known_host(host)
    if below and is_literal(known):
        raise ValueError("nothing is below an address")
    return HostPattern(known, below, port)


def split_port(text: str) -> tuple[str, int | None]:
    """Split `HOST`, `HOST:PORT`, `[IPv6]` or `[IPv6]:PORT` into host and port.

    :raises ValueError: when the port is invalid.
    """
    if bracketed := re.fullmatch(_BRACKETED, text):
        host, port = bracketed[1], bracketed[2]
        if ":" not in host:
            raise ValueError("only an IPv6 address stands in brackets")
    elif text.count(":") > 1:
        return text, None
    else:
        host, colon, rest = text.partition(":")
        port = rest if colon else None
    if port is None:
        return host, None
    if not re.fullmatch(_PORT, port) or int(port) > _HIGHEST_PORT:
        raise ValueError(f"{port!r} is no port")
    return host, int(port)


def known_host(text: str) -> str:
    """Normalise a host: an IP address, or a lower-case ASCII name without a trailing dot.

    :raises ValueError: when it is neither.
    """
    from ipaddress import ip_address  # 3 ms that only a list costs

    try:
        if "%" not in text:
            return str(ip_address(text))
    except ValueError:
        pass
    name = text.removesuffix(".").lower()
    if not name.isascii():
        import idna  # 5 ms that only such a name costs

        # IDNA 2008, as browsers and curl look names up; Python's own codec has the older one.
        name = idna.encode(name, uts46=True).decode("ascii")
    if len(name) > LONGEST_NAME or not re.fullmatch(_NAME, name):
        raise ValueError("it is no name of a host" if name else "it is empty")
    if re.fullmatch(_NUMBER_AT_THE_END, name):
        raise ValueError("it is no address, and no name ends in a number")
    return name


def is_literal(host: str) -> bool:
    """Return whether a host, normalised by `known_host`, is an IP address."""
    return ":" in host or host.rpartition(".")[2].isdigit()


def tightened(said: Network, limit: Network) -> Network:
    """Return the hosts that both the setting `said` and the setting `limit` allow.

    Return False if no host is allowed by both.

    :raises ConfigError: when both are lists and one has an invalid pattern.
    """
    if limit is True or said is False:
        return said
    if limit is False or said is True:
        return limit
    limits = [host_pattern(each) for each in limit]
    pairs = ((host_pattern(each), other) for each in said for other in limits)
    found = [both for one, other in pairs if (both := one.overlap(other)) is not None]
    return tuple(dict.fromkeys(map(str, found))) or False


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine's loopback.

    That is `localhost`, 127.0.0.0/8 and `::1`, but no name that needs a lookup.
    """
    address = ip_address_of(host)
    return address.is_loopback if address else host.lower().removesuffix(".") == "localhost"


def ip_address_of(host: str) -> "IPv4Address | IPv6Address | None":
    """Parse an IP address, also IPv4 in IPv6 form; return None for a name."""
    from ipaddress import ip_address  # as in `known_host`

    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
