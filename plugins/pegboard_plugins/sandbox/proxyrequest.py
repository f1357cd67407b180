"""A request to a proxy: its target, and its head (line and fields) as sent to the server.

RFC 9112: §3.2 forms of the target, §6.3 length of the body; RFC 9110: §7.6.1 hop-by-hop fields.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence

import msgspec

from pegboard import PegboardError
from pegboard.unstable import known_host, split_port

HEAD_LIMIT_BYTES = 64 << 10
_REQUEST = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_URL = re.compile(r"http://([^/?#@\\]+)([/?][^#\\]*)?", re.IGNORECASE)
_LENGTH = re.compile(r"[0-9]{1,18}")
_HTTP_PORT = 80
# Of this hop alone, and those that a request gets anew.
_OUR_AFFAIR = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "proxy-authorization", "te"),
        *("trailer", "upgrade", "host"),
    }
)

Body = int | None
"""The bytes that follow a head, None for chunks."""
_Fields = Sequence[tuple[str, str]]


class RequestRefusedError(PegboardError):
    """An error for a request that the proxy refuses; the text is one line for the client."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the proxy; `head` is what the server gets, or None if a tunnel is requested."""

    host: str
    port: int
    head: bytes | None = None
    body: Body = 0


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Read the next request; return None if the connection closes before the request is complete.

    The caller limits the time.

    :raises RequestRefusedError: when the request is not one to an HTTP/1.1 proxy.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        limit = f"{HEAD_LIMIT_BYTES >> 10} KiB"
        raise RequestRefusedError(431, f"the head of the request is longer than {limit}") from error
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head[:-4].split(b"\r\n")
    line = _REQUEST.fullmatch(first)
    fields = [_FIELD.fullmatch(each) for each in rest]
    if line is None or None in fields:
        raise RequestRefusedError(400, "this is no request of HTTP/1.1 to a proxy")
    known = [
        (each[1].decode("ascii").lower(), each[2].decode("latin-1").rstrip(" \t"))
        for each in fields
        if each is not None
    ]
    return _request(line[1].decode("ascii"), line[2].decode("ascii"), known)


def _request(method: str, target: str, fields: _Fields) -> Request:
    if method == "CONNECT":
        host, port = _place(target)
        if port is None:
            raise RequestRefusedError(400, f"CONNECT takes HOST:PORT, not {target[:200]}")
        return Request(host=host, port=port)
    url = _URL.fullmatch(target)
    if url is None:
        raise RequestRefusedError(
            400, f"only CONNECT and http:// URLs go through, not {target[:200]}"
        )
    host, port = _place(url[1])
    path = url[2] or "/"
    return Request(
        host=host,
        port=port or _HTTP_PORT,
        head=_head(f"{method} {path if path[0] == '/' else f'/{path}'}", url[1], fields),
        body=_body(fields),
    )


def _place(authority: str) -> tuple[str, int | None]:
    try:
        host, port = split_port(authority)
        return known_host(host), port
    except ValueError as error:
        raise RequestRefusedError(400, f"{authority[:200]} is no host: {error}") from error


def _head(line: str, authority: str, fields: _Fields) -> bytes:
    """Return the head of the request to the server; it names no other host than the URL's."""
    named = {
        each.strip().lower()
        for name, value in fields
        if name == "connection"
        for each in value.split(",")
    }
    kept = [
        f"{name}: {value}"
        for name, value in fields
        if name not in _OUR_AFFAIR and name not in named - {"content-length", "transfer-encoding"}
    ]
    lines = (f"{line} HTTP/1.1", f"host: {authority}", *kept, "connection: close", "", "")
    return "\r\n".join(lines).encode("latin-1")


def _body(fields: _Fields) -> Body:
    found: Mapping[str, list[str]] = {
        name: [value for each, value in fields if each == name]
        for name in ("content-length", "transfer-encoding")
    }
    match found["content-length"], [each.lower() for each in found["transfer-encoding"]]:
        case [], []:
            return 0
        case [length], [] if _LENGTH.fullmatch(length):
            return int(length)
        case [], ["chunked"]:
            return None
    raise RequestRefusedError(400, "the length of the body is not clear")
