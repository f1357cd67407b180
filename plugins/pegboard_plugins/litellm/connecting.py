"""The explanation of litellm's "Connection error.", with the settings that fix it."""

import asyncio
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from pegboard.unstable import CERTIFICATES_HINT, Proxy, proxy_for, tls_context, untrusted_issuer

_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
LOOKUP_S = 5.0
"""How long a request to the issuer may take; it is optional."""


async def reason_of(error: Exception, environ: Mapping[str, str]) -> str:
    """Return the cause of a failed connection in parentheses, or "" if no connection failed."""
    cause = next((each for each in _causes(error) if isinstance(each, OSError)), None)
    if cause is None:
        return ""
    host, port = getattr(cause, "host", None), getattr(cause, "port", None)
    place = f"{host}:{port}" if host and port else ""
    if _UNTRUSTED in str(cause):
        why = f"{_short(cause)}{await _advice(place, environ)}"
    elif proxy := _proxy_at(place, environ):
        why = f"the {proxy} cannot be reached; correct {proxy.source}, or use NO_PROXY"
    else:
        why = f"cannot reach {place}: {_short(cause)}" if place else _short(cause)
    return "" if why in str(error) else f" ({why})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _short(error: BaseException) -> str:
    """Return the operating system's message in an error of aiohttp, which prints more around it."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    return getattr(inner, "strerror", None) or str(inner)


async def _advice(place: str, environ: Mapping[str, str]) -> str:
    """Return advice on an untrusted certificate: its issuer, and the variable to set or correct."""
    try:
        await asyncio.to_thread(tls_context, environ)
        async with asyncio.timeout(LOOKUP_S):
            issuer = await untrusted_issuer(f"https://{place}/", environ) if place else ""
    except ValueError as error:
        return f"; {error}"
    except TimeoutError:
        issuer = ""
    return (f"; the issuer is {issuer!r}" if issuer else "") + f"; {CERTIFICATES_HINT}"


def _proxy_at(place: str, environ: Mapping[str, str]) -> Proxy | None:
    for scheme in ("https", "http"):
        try:
            proxy = proxy_for(urlsplit(f"{scheme}://model.invalid/"), environ)
        except ValueError:
            continue
        if proxy and f"{proxy.host}:{proxy.port}" == place:
            return proxy
    return None
