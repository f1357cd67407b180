"""How much of each request of a long session a provider's cache has, from the request before.

`python tests/bench/bench_prefix.py` prints a line for each of some thirty requests.
"""

import asyncio
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from long_session import kept_bytes, requests_of_thirty_steps


async def main() -> None:
    """Print a line for each step, and the whole."""
    with tempfile.TemporaryDirectory() as folder:
        requests = await requests_of_thirty_steps(Path(folder))
    kept, sent = 0, 0
    for number, (before, after) in enumerate(pairwise(requests), 2):
        same, size = kept_bytes(before, after)
        kept, sent = kept + same, sent + size
        sys.stdout.write(f"request {number:3} {size:8} bytes {same / size:7.1%} kept\n")
    sys.stdout.write(f"all         {sent:8} bytes {kept / sent:7.1%} kept\n")


if __name__ == "__main__":
    asyncio.run(main())
