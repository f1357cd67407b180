"""A process whose model speaks without end, and that tells how far it has come; run by tests only.

`stream_child.py <folder> <first> <piece>` is answered with `first` letters, then with `piece` of
them a hundred times a second. Each line on stdout is `<letters> <seconds>`: what the model has
said, by the clock that all processes share.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from itertools import chain, repeat
from pathlib import Path

sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).parents[2]))

from pegboard.providers import ModelRequest, StreamEvent, TextDelta
from support.models.played import HI, Played, opened

PAUSE_S = 0.01


async def main(folder: Path, first: int, piece: int) -> None:
    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        letters = 0
        for size in chain([first], repeat(piece)):
            yield TextDelta("0", "x" * size)
            letters += size
            os.write(1, f"{letters} {time.monotonic()}\n".encode())
            await asyncio.sleep(PAUSE_S)

    async with opened(folder, Played(answer)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
