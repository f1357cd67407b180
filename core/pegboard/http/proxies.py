"""The proxy for a URL, chosen from the environment like in curl and httpx."""

import base64
import re
import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_network
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec

from pegboard.kit.hosts import ip_address_of, is_loopback

_PORTS = {"http": 80, "https": 443}
_PORT = re.compile(r"([^:]+|\[.*\]):(\d{1,5})")
"""A host and its port; more than one colon is an IPv6 address without a port."""


class Proxy(msgspec.Struct, frozen=True):
    """An HTTP proxy; `source` is the variable or the option that sets it."""

    source: str
    host: str
    port: int
    login: str = ""

    @property
    def headers(self) -> list[str]:
        """The header line with the proxy's user name and password, or [] if the proxy has none."""
        if not self.login:
            return []
        return [f"proxy-authorization: Basic {base64.b64encode(self.login.encode()).decode()}"]

    @property
    def url(self) -> str:
        """The URL of the proxy, including its user name and password."""
        name, colon, password = self.login.partition(":")
        login = f"{quote(name, '')}{colon}{quote(password, '')}@" if self.login else ""
        return f"http://{login}{self._place}"

    @property
    def _place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        """Return the address and the source of the proxy, without its user name and password."""
        return f"proxy {self._place} of {self.source}"


def proxy_for(url: SplitResult, env: Mapping[str, str], chosen: str = "") -> Proxy | None:
    """Return the proxy for a URL, or None for a direct connection.

    `chosen` is a proxy that the configuration sets; it is always used. Without it the variables
    `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` decide, with precedence for lower case.
    A URL of this machine then needs no proxy.

    :raises ValueError: when the proxy is not an http:// URL.
    """
    if chosen:
        return _parsed(chosen, "the option `proxy`")
    names = (f"{url.scheme}_proxy", f"{url.scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    name = next((name for name in names if env.get(name)), None)
    host = (url.hostname or "").removesuffix(".")
    if name is None or is_this_machine(host):
        return None
    port = url.port or _PORTS.get(url.scheme, 0)
    no_proxy = (env.get("no_proxy") or env.get("NO_PROXY") or "").lower()
    if any(_names(entry, url.scheme, host, port) for entry in re.split(r"[,\s]+", no_proxy)):
        return None
    return _parsed(env[name], name)


def is_this_machine(host: str) -> bool:
    """Return whether connecting to the host stays on this machine.

    This applies to the loopback addresses in all notations of the system (`127.1`), the unspecified
    addresses, `localhost` and its subdomains (RFC 6761 6.3).
    """
    name = host.lower().removesuffix(".")
    address = _address(name)
    if address is None:
        return is_loopback(name) or name.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _address(host: str) -> IPv4Address | IPv6Address | None:
    if address := ip_address_of(host):
        return address
    try:
        return IPv4Address(socket.inet_aton(host)) if host[:1].isdigit() else None
    except OSError:
        return None


def _names(entry: str, scheme: str, host: str, port: int) -> bool:
    """Return whether an entry of `NO_PROXY` names the host, its network or a parent domain."""
    for_scheme, colons, rest = entry.rpartition("://")
    if colons and for_scheme not in (scheme, "all"):
        return False
    parts = _PORT.fullmatch(rest)
    name, its_port = (parts[1], int(parts[2])) if parts else (rest, port)
    name = name.strip("[]").removeprefix("*").removeprefix(".").removesuffix(".")
    if rest == "*" or not name or its_port != port:
        return rest == "*"
    address = ip_address_of(host)
    if address is None:
        return host == name or host.endswith(f".{name}")
    try:
        return address in ip_network(name, strict=False)
    except ValueError:
        return False


def _parsed(value: str, source: str) -> Proxy:
    parts = urlsplit(value if "://" in value else f"http://{value}")
    try:
        host, port = parts.hostname, parts.port or _PORTS["http"]
    except ValueError:
        host, port = None, 0
    if parts.scheme != "http" or not host:
        place = parts.netloc.rpartition("@")[2]
        raise ValueError(
            f"{source} is {parts.scheme}://{place}, and only http:// proxies can be used: set "
            f"{source} to http://HOST:PORT, or name the server in NO_PROXY"
        )
    login = "" if parts.username is None else f"{parts.username}:{parts.password or ''}"
    return Proxy(source, host, port, unquote(login))
