"""The floor of a stream's latency: a client that reads the model's socket, with nothing between."""

import asyncio
import json
import re
import time
from urllib.parse import urlsplit

_STAMP = re.compile(rb"<(\d+)>")
_HEAD = b"POST %b/chat/completions HTTP/1.1\r\nhost: %b\r\ncontent-length: %d\r\n\r\n"
READ_BYTES = 1 << 16
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}


async def raw_ages_ms(url: str, model: str, text: str) -> list[float]:
    """How old each stamped piece of an answer is when its bytes arrive, in milliseconds."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    messages = [{"role": "user", "content": text}]
    asked = {"model": model, "stream": True, "tools": [TOOL], "messages": messages}
    body = json.dumps(asked).encode()
    writer.write(_HEAD % (place.path.encode(), place.netloc.encode(), len(body)) + body)
    found: list[float] = []
    content = b""
    while b"[DONE]" not in content:
        content = await reader.read(READ_BYTES)
        assert content, "the model's answer broke off"
        now_ns = time.monotonic_ns()
        found += [(now_ns - int(sent)) / 1e6 for sent in _STAMP.findall(content)]
    writer.close()
    return found
