"""Where models may come from: configured keys, and model servers on this machine."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from pegboard import App
from pegboard.http import is_loopback

PROBE_S = 0.3
"""The time limit for a connection to a server on this machine."""


async def model_sources(app: App) -> tuple[str, ...]:
    """Return lines about the configured keys and the model servers that answer on this machine."""
    sources = {name: app.keys.source(name, each.env) for name, each in app.providers.items()}
    keys = [f"{name} ({source})" for name, source in sources.items() if source is not None]
    local = _local(app)
    open_ = await asyncio.gather(*(_answers(*place) for place in local.values()))
    names = [name for name, answers in zip(local, open_, strict=True) if answers]
    answering = [f"{name} ({local[name][0]}:{local[name][1]})" for name in names]
    known = ", ".join(local)
    return (
        f"API keys: {', '.join(keys) or 'none found'}",
        f"local model servers: {', '.join(answering) or f'none found ({known})'}",
        *(f"`-m {name}/MODEL` asks it, and `pegboard models --local` lists them" for name in names),
    )


def _local(app: App) -> Mapping[str, tuple[str, int]]:
    """Return the host and port of each provider whose model server runs on this machine."""
    places = {}
    for name, provider in app.providers.items():
        model = None if provider.env else provider.resolve("any")
        url = urlsplit(model.api.url or "") if model else urlsplit("")
        if url.hostname and url.port and is_loopback(url.hostname):
            places[name] = (url.hostname, url.port)
    return places


async def _answers(host: str, port: int) -> bool:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PROBE_S):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            return True
    return False
