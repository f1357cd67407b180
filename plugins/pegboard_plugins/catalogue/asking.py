"""Asks servers for their models, and a table on the web for what is known of all; keeps both."""

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard_plugins.catalogue.build import tables
from pegboard_plugins.catalogue.pricelist import read_price_list
from pegboard_plugins.catalogue.sources import REFRESHED, SERVED
from pegboard_plugins.catalogue.table import Listed, Row, read_table

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
_PER_MILLION = 1_000_000
_WINDOWS = ("context_length", "context_window", "max_model_len", "max_context_length")


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's server: where it is, and the key for it."""

    provider: str
    url: str
    key: str = ""
    timeout_s: float = REMOTE_S


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a question: how many models there are, or why it is not known."""

    who: str
    models: int = 0
    error: str = ""


async def ask_servers(
    servers: Iterable[Server], cache: Path, *, local: bool
) -> tuple[Outcome, ...]:
    """Ask each server for its models, all at once, and keep what they say.

    No proxy stands between us and servers that are `local`.
    """
    import httpx  # 0.1 s that a list without questions does not pay

    async with httpx.AsyncClient(follow_redirects=False, trust_env=not local) as client:
        answers = await asyncio.gather(*(_listed(client, server) for server in servers))
    known = {each.provider: table for each, table, _ in answers if table is not None}
    if known:
        await asyncio.to_thread(_keep, cache / SERVED, known)
    return tuple(
        Outcome(who=each.provider, models=len(table.models) if table else 0, error=error)
        for each, table, error in answers
    )


async def refresh(url: str, cache: Path) -> Outcome:
    """Fetch the newest price list, and keep the table that is made of it."""
    import httpx

    try:
        async with httpx.AsyncClient(follow_redirects=True, timeout=REMOTE_S) as client:
            content = await _body(client, url, {})
        found = await asyncio.to_thread(lambda: tables(read_price_list(content)))
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return Outcome(who=url, error=_reason(error))
    models = sum(len(each.models) for each in found.values())
    if not models:
        return Outcome(who=url, error="it has no model of a known provider")
    await asyncio.to_thread(_keep, cache / REFRESHED, found)
    return Outcome(who=url, models=models)


async def _listed(client: "httpx.AsyncClient", server: Server) -> tuple[Server, Listed | None, str]:
    import httpx

    headers = {"authorization": f"Bearer {server.key}"} if server.key else {}
    try:
        async with asyncio.timeout(server.timeout_s):
            content = await _body(client, f"{server.url.rstrip('/')}/models", headers)
        found = msgspec.json.decode(content, type=_Models)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError) as error:
        return server, None, _reason(error)
    rows = {str(each["id"]): _row(each) for each in found.data if each.get("id")}
    return server, Listed(models=rows), ""


class _Models(msgspec.Struct, frozen=True):
    data: list[dict[str, Any]]


async def _body(client: "httpx.AsyncClient", url: str, headers: Mapping[str, str]) -> bytes:
    content = bytearray()
    async with client.stream("GET", url, headers=headers) as answer:
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
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _row(entry: Mapping[str, Any]) -> Row:
    """What a server says of a model, in the fields that servers have for it."""
    named = next((entry[name] for name in _WINDOWS if _count(entry.get(name))), None)
    top, meta = entry.get("top_provider"), entry.get("meta")
    top = top if isinstance(top, Mapping) else {}
    running = meta.get("n_ctx") if isinstance(meta, Mapping) else None
    return Row(
        c=_count(running) or _count(named),
        o=_count(entry.get("max_completion_tokens")) or _count(top.get("max_completion_tokens")),
        p=_prices(entry.get("pricing")),
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _prices(said: object) -> tuple[float | None, ...]:
    """US dollars per million tokens, of those per token."""
    if not isinstance(said, Mapping):
        return ()
    names = ("prompt", "completion", "input_cache_read", "input_cache_write")
    found = [_dollars(said.get(name)) for name in names]
    return tuple(found) if found[0] is not None and found[1] is not None else ()


def _dollars(value: object) -> float | None:
    try:
        return round(float(value) * _PER_MILLION, 6)  # type: ignore[arg-type]  # tried
    except (TypeError, ValueError):
        return None


def _keep(path: Path, found: Mapping[str, Listed]) -> None:
    """Lay the providers over those of the file, at one blow."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.encode({**read_table(path), **found})
    temporary = path.with_name(f"{path.name}.{os.getpid()}~")
    temporary.write_bytes(content)
    temporary.replace(path)
