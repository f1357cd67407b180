"""How much of each request of a long session a provider's cache has, from the request before.

`python tests/bench/bench_prefix.py` prints a line for each of some thirty requests, and then the
bytes of thirty steps that continue stored responses (`chainResponses`) beside those that do not.
"""

import asyncio
import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from msgspec.structs import replace

from pegboard import App
from support.models import response_frames as frames
from support.models.model_server import ModelServer
from support.models.stored_responses import Storing
from support.sessions.long_session import (
    asked,
    kept_bytes,
    options,
    project_in,
    requests_of_thirty_steps,
)

STEPS = 30


async def sent_bytes(folder: Path, *, chained: bool) -> int:
    """The bytes of the requests of thirty steps, each of which reads a file."""
    project = project_in(folder)
    looks = [{"filePath": "sub/b.txt", "offset": 10 * at, "limit": 100} for at in range(STEPS)]
    calls = [[frames.call("read", look, f"call_{at}")] for at, look in enumerate(looks)]
    async with ModelServer(Storing(*calls, [frames.text("Done.")])) as server:
        given = options(folder, server.url)
        chosen = {"baseURL": server.url, "apiKey": "key", "wire": "responses"}
        provider = {"options": {**chosen, "chainResponses": chained}, "models": {"model": {}}}
        config = {"model": "fake/model", "provider": {"fake": provider}}
        async with App.open(project, replace(given, config=config)) as app:
            await app.prompt(await app.create_session(), "go")
        requests = asked(server)
        assert len(requests) == STEPS + 1, f"{len(requests)} requests"
        return sum(len(json.dumps(body)) for body in requests)


async def main() -> None:
    """Print a line for each step, the whole, and what a chain sends of it."""
    with tempfile.TemporaryDirectory() as folder:
        requests = await requests_of_thirty_steps(Path(folder))
    kept, sent = 0, 0
    for number, (before, after) in enumerate(pairwise(requests), 2):
        same, size = kept_bytes(before, after)
        kept, sent = kept + same, sent + size
        sys.stdout.write(f"request {number:3} {size:8} bytes {same / size:7.1%} kept\n")
    sys.stdout.write(f"all         {sent:8} bytes {kept / sent:7.1%} kept\n")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        whole = await sent_bytes(Path(one), chained=False)
        new = await sent_bytes(Path(other), chained=True)
    sys.stdout.write(f"{STEPS} steps    {whole:8} bytes, chained {new}, ratio {new / whole:.2f}\n")


if __name__ == "__main__":
    asyncio.run(main())
