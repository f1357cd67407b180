"""Issuers and servers of tools that want a token, each as a process."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

HERE = Path(__file__).parent


@asynccontextmanager
async def started(role: str, folder: Path, *words: str):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(HERE / "oauth_server.py"), role, str(folder), *words),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield json.loads(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()
