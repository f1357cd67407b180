"""The test whether an IP address belongs to the public internet."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_UNICAST = ip_network("2000::/3")
"""All IPv6 addresses that are given out (RFC 4291 2.4); the rest have other meanings."""
_NOT_PUBLIC = (
    ip_network("192.0.0.0/24"),  # in part public to older Pythons; a cloud's metadata (Oracle)
    ip_network("3fff::/20"),  # for documentation (RFC 9637), and public to older Pythons
    ip_network("168.63.129.16/32"),  # public by its number, and yet a cloud's metadata (Azure)
)


def is_public_address(address: str) -> bool:
    """Return whether an IP address, and any address embedded in it, is public."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _embedded(parsed) if isinstance(parsed, IPv6Address) else None
    if inner is not None:
        return is_public_address(str(inner))
    reserved = any(parsed in network for network in _NOT_PUBLIC) or (
        isinstance(parsed, IPv6Address) and parsed not in _UNICAST
    )
    return parsed.is_global and not parsed.is_multicast and not reserved


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address, or None."""
    if any(address in network for network in _NAT64):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.teredo:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour
