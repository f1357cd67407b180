"""The import of litellm, in a thread and with its log output off."""

import asyncio
import gc
import os
import warnings
from importlib import import_module
from typing import Any

_ENVIRONMENT = {
    # Else it fetches its price list from the network while it is imported.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # Else it takes variables from a `.env`, in a notebook that of the project: addresses, too.
    "LITELLM_MODE": "PRODUCTION",
}
"""Whatever the user's shell says: both hold of what litellm is here."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


async def load() -> Any:  # noqa: ANN401 - litellm's types cost more to check than to do without
    """Import litellm in a thread, and configure it.

    :raises ImportError: when litellm is not installed, or is broken.
    """
    return await asyncio.to_thread(_load)


def _load() -> Any:  # noqa: ANN401 - as above
    os.environ.update(_ENVIRONMENT)
    # litellm's HTTP clients would send prompts for a server of this machine to a proxy.
    name = "no_proxy" if os.environ.get("no_proxy") else "NO_PROXY"
    os.environ[name] = ",".join(filter(None, (os.environ.get(name), *_LOOPBACK)))
    collected = gc.isenabled()
    gc.disable()  # a quarter of the import is garbage collection that finds nothing
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module: Any = import_module("litellm")
    finally:
        if collected:
            gc.enable()
    # litellm builds pydantic models during requests too, and pydantic warns of its type hints.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"pydantic\._internal")
    module.telemetry = False
    module.suppress_debug_info = True
    module.drop_params = True
    module.modify_params = True
    return module


async def close(module: Any) -> None:  # noqa: ANN401 - as above
    """Close the HTTP clients that litellm has cached."""
    cleanup = import_module("litellm.llms.custom_httpx.async_client_cleanup")
    await cleanup.close_litellm_async_clients()
    in_memory = getattr(module, "in_memory_llm_clients_cache", None)
    if in_memory is not None:
        in_memory.flush_cache()
