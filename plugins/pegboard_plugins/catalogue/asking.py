"""Requests for lists of models, from servers and from a table on the web; both are stored."""

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard.unstable import without_values
from pegboard_plugins.catalogue.build import tables
from pegboard_plugins.catalogue.listing import Kind, key_headers, listed
from pegboard_plugins.catalogue.pricelist import read_price_list
from pegboard_plugins.catalogue.table import REFRESHED, SERVED, Listed, read_table

if TYPE_CHECKING:
    import httpx

PRICES_URL = (
    "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
)
"""The newest price list of litellm; `plugins.catalogue.options.url` names another."""
LOCAL_S = 1.0
"""How long a server on this machine may take to list its models."""
REMOTE_S = 20.0
MOST_BYTES = 32 << 20


class ListingServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server that lists a provider's models: its URL, the list's format, and the API key."""

    provider: str
    url: str
    kind: Kind = "openai"
    key: str = ""
    timeout_s: float = REMOTE_S


class ListingOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a request for a list of models: how many there are, or an error."""

    who: str
    models: int = 0
    error: str = ""


async def ask_servers(
    servers: Iterable[ListingServer], cache: Path, *, local: bool
) -> tuple[ListingOutcome, ...]:
    """Ask each server for its models, all at once, and store the answers.

    Requests to `local` servers use no proxy.
    """
    import httpx  # 0.1 s that a list without questions does not pay

    async with httpx.AsyncClient(follow_redirects=False, trust_env=not local) as client:
        answers = await asyncio.gather(*(_listed(client, server) for server in servers))
    known = {each.provider: table for each, table, _ in answers if table is not None}
    if known:
        await asyncio.to_thread(_keep, cache / SERVED, known)
    return tuple(
        ListingOutcome(who=each.provider, models=len(table.models) if table else 0, error=error)
        for each, table, error in answers
    )


async def refresh(url: str, cache: Path) -> ListingOutcome:
    """Download the newest price list, convert it to a table, and store the table."""
    import httpx

    try:
        async with httpx.AsyncClient(follow_redirects=True, timeout=REMOTE_S) as client:
            content = await _body(client, url, {})
        found = await asyncio.to_thread(lambda: tables(read_price_list(content)))
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return ListingOutcome(who=url, error=_reason(error))
    models = sum(len(each.models) for each in found.values())
    if not models:
        return ListingOutcome(who=url, error="it has no model of a known provider")
    await asyncio.to_thread(_keep, cache / REFRESHED, found)
    return ListingOutcome(who=url, models=models)


async def _listed(
    client: "httpx.AsyncClient", server: ListingServer
) -> tuple[ListingServer, Listed | None, str]:
    import httpx

    headers = key_headers(server.kind, server.key)

    async def ask(url: str, body: object = None) -> Any:  # noqa: ANN401 - JSON of any shape
        try:
            return msgspec.json.decode(await _body(client, url, headers, body))
        except httpx.HTTPError as error:
            raise OSError(_reason(error)) from error

    try:
        async with asyncio.timeout(server.timeout_s):
            rows = await listed(server.kind, server.url.rstrip("/"), ask)
    except (httpx.InvalidURL, OSError, ValueError) as error:
        return server, None, without_values(_reason(error), [server.key] if server.key else [])
    return server, Listed(url=server.url, models=rows), ""


async def _body(
    client: "httpx.AsyncClient", url: str, headers: Mapping[str, str], sent: object = None
) -> bytes:
    """Return the content of a URL; if `sent` is given, send it by POST."""
    content = bytearray()
    method = "GET" if sent is None else "POST"
    async with client.stream(method, url, headers=headers, json=sent) as answer:
        answer.raise_for_status()
        async for piece in answer.aiter_bytes():
            content += piece
            if len(content) > MOST_BYTES:
                raise ValueError(f"more than {MOST_BYTES >> 20} MB")
    return bytes(content)


def _reason(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return f"status {status}"
    if type(error).__name__ == "ConnectError":
        return "nothing listens there"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _keep(path: Path, found: Mapping[str, Listed]) -> None:
    """Add the providers' model lists to the table in `path`, and replace this file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.encode({**read_table(path), **found})
    temporary = path.with_name(f"{path.name}.{os.getpid()}~")
    temporary.write_bytes(content)
    temporary.replace(path)
