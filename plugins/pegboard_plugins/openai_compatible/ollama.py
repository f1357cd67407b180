"""The context window of Ollama, which silently cuts off requests that exceed it."""

from urllib.parse import urlsplit

from pegboard.errors import ContextOverflowError
from pegboard.http import Post, decode_json
from pegboard.providers import ModelRequest
from pegboard.unstable import Fetch, mapping_in

BYTES_A_TOKEN = 4
"""Of JSON and code, at most: a request that is counted so is surely as long."""


async def check_window(request: ModelRequest, post: Post, fetch: Fetch) -> None:
    """Check that the request fits into the window of the model, if the model is loaded.

    The server chooses the window (`OLLAMA_CONTEXT_LENGTH`), and not the model.

    :raises ContextOverflowError: when Ollama would read a part of the request only.
    """
    url = urlsplit(post.url)._replace(path="/api/ps", query="").geturl()
    found = await fetch(url)
    loaded = mapping_in(decode_json(found)).get("models") if found else ()
    name = request.model.api.id
    for each in map(mapping_in, loaded or ()):
        window = each.get("context_length")
        if str(each.get("name")).removesuffix(":latest") != name.removesuffix(":latest"):
            continue
        if isinstance(window, int) and 0 < window < len(post.body) // BYTES_A_TOKEN:
            raise ContextOverflowError(
                f"{request.model.provider_id}: Ollama reads {window:,} tokens of a request to "
                f"{name}, and this one is longer; OLLAMA_CONTEXT_LENGTH sets how many it reads",
                provider_id=request.model.provider_id,
            )
