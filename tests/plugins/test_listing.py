"""What servers say of their models when they are asked: each kind in its own spelling."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pegboard.schema.model import CacheCost, Modalities, ModelCost, ModelFacts
from pegboard_plugins.catalogue.asking import ListingOutcome, ListingServer, ask_servers
from pegboard_plugins.catalogue.listing import Kind, kind_of
from pegboard_plugins.catalogue.lookup import facts_of, names_of

OPENROUTER = {
    "data": [
        {
            "id": "acme/large",
            "context_length": 262144,
            "architecture": {"input_modalities": ["text", "image", "file"]},
            "pricing": {
                "prompt": "0.000003",
                "completion": "0.000015",
                "request": "0",
                "input_cache_read": "0.0000003",
            },
            "top_provider": {"context_length": 262144, "max_completion_tokens": 64000},
            "supported_parameters": ["max_tokens", "reasoning", "temperature", "tools"],
        },
        {
            "id": "openrouter/auto",
            "context_length": 2000000,
            "pricing": {"prompt": "-1", "completion": "-1"},
            "top_provider": {"max_completion_tokens": None},
        },
    ]
}
TOGETHER = [
    {"id": "acme/m", "context_length": 131072, "pricing": {"input": 0.88, "output": 0.9, "base": 0}}
]
VLLM = {"data": [{"id": "acme/m", "owned_by": "vllm", "max_model_len": 40960, "root": "acme/m"}]}
MISTRAL = {"data": [{"id": "m", "max_context_length": 32768, "capabilities": {"vision": False}}]}
GROQ = {"data": [{"id": "m", "context_window": 131072, "max_completion_tokens": 8192}]}
LLAMACPP = {
    "models": [{"name": "qwen.gguf"}],
    "data": [{"id": "qwen.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 40960}}],
}
PROPS = {
    "default_generation_settings": {"n_ctx": 8192, "params": {"n_predict": -1}},
    "total_slots": 4,
    "modalities": {"vision": True, "audio": False},
}
LMSTUDIO = {
    "data": [
        {"id": "loaded", "type": "llm", "max_context_length": 32768, "loaded_context_length": 4096},
        {"id": "seeing", "type": "vlm", "max_context_length": 128000, "state": "not-loaded"},
        {"id": "nomic", "type": "embeddings", "max_context_length": 2048},
    ]
}
TAGS = {"models": [{"name": name} for name in ("run:8b", "set:8b", "plain:8b", "embed:latest")]}
PS = {"models": [{"name": "run:8b", "context_length": 16384}]}
SHOWN = {
    "run:8b": {"model_info": {"llama.context_length": 131072}, "capabilities": ["completion"]},
    "set:8b": {
        "parameters": 'stop      "<end>"\nnum_ctx                        32768',
        "model_info": {"qwen3.context_length": 40960},
        "capabilities": ["completion", "tools", "thinking", "vision"],
    },
    "plain:8b": {"model_info": {"llama.context_length": 131072}},
    "embed:latest": {"capabilities": ["embedding"]},
}
CLAUDE = {"data": [{"id": "claude-x", "max_input_tokens": 200000, "max_tokens": 64000}]}
GEMINI = {
    "models": [
        {
            "name": "models/gemini-x",
            "inputTokenLimit": 1048576,
            "outputTokenLimit": 65536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        },
        {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
    ]
}


@contextmanager
def serving(
    answers: Mapping[str, Any], shown: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, list[tuple[str, dict[str, str]]]]]:
    """A server with JSON at these paths, and what it was asked for, each with its headers."""
    asked: list[tuple[str, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(answers.get(self.path.partition("?")[0]))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self._answer((shown or {}).get(body["model"]))

        def _answer(self, answer: object) -> None:
            asked.append((self.path, {name.lower(): v for name, v in self.headers.items()}))
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def facts_at(
    cache: Path,
    answers: Mapping[str, Any],
    *,
    kind: Kind = "openai",
    shown: Mapping[str, Any] | None = None,
) -> dict[str, ModelFacts]:
    """What is known of the models that a server lists, below the path `/v1`."""
    with serving(answers, shown) as (url, _):
        server = ListingServer(provider="mine", url=f"{url}/v1/", kind=kind, key="k" * 20)
        [outcome] = asyncio.run(ask_servers([server], cache, local=True))
    assert outcome.error == ""
    found = {
        name: facts_of("mine", name, cache) for name in names_of("mine", server.url, cache) or ()
    }
    assert len(found) == outcome.models
    return {name: facts for name, facts in found.items() if facts is not None}


def windows(facts: Mapping[str, ModelFacts]) -> dict[str, tuple[int | None, int | None]]:
    return {name: (each.limit.context, each.limit.output) for name, each in facts.items()}


@pytest.mark.parametrize(
    ("listed", "window"),
    [
        (VLLM, {"acme/m": (40960, None)}),
        (MISTRAL, {"m": (32768, None)}),
        (GROQ, {"m": (131072, 8192)}),
        (TOGETHER, {"acme/m": (131072, None)}),
        ({"data": [{"id": "bare", "context_length": True}, {}]}, {"bare": (None, None)}),
    ],
    ids=["vllm", "mistral", "groq", "together", "bare"],
)
def test_lists_of_openai_s_kind_have_fields_of_their_own(
    tmp_path: Path, listed: object, window: object
) -> None:
    assert windows(facts_at(tmp_path, {"/v1/models": listed})) == window


def test_openrouter_says_prices_pictures_and_what_a_model_takes(tmp_path: Path) -> None:
    found = facts_at(tmp_path, {"/v1/models": OPENROUTER})

    large, auto = found["acme/large"], found["openrouter/auto"]
    assert windows(found) == {"acme/large": (262144, 64000), "openrouter/auto": (2000000, None)}
    assert large.cost == ModelCost(input=3, output=15, cache=CacheCost(read=0.3))
    assert large.reads == Modalities(image=True, pdf=True)
    assert (large.toolcall, large.reasoning, large.temperature) == (True, True, True)
    assert auto.cost is None  # whose price is that of another
    assert (auto.reads, auto.toolcall) == (None, None)


def test_together_says_prices_for_a_million_tokens(tmp_path: Path) -> None:
    found = facts_at(tmp_path, {"/v1/models": TOGETHER})

    assert found["acme/m"].cost == ModelCost(input=0.88, output=0.9)


@pytest.mark.parametrize("kind", ["openai", "llamacpp"])
def test_of_llama_cpp_the_window_of_one_slot_counts(tmp_path: Path, kind: Kind) -> None:
    found = facts_at(tmp_path, {"/v1/models": LLAMACPP, "/props": PROPS}, kind=kind)

    assert windows(found) == {"qwen.gguf": (8192, None)}
    assert found["qwen.gguf"].reads == Modalities(image=True)


def test_what_llama_cpp_could_read_is_no_window(tmp_path: Path) -> None:
    assert windows(facts_at(tmp_path, {"/v1/models": LLAMACPP})) == {"qwen.gguf": (None, None)}


@pytest.mark.parametrize("kind", ["openai", "lmstudio"])
def test_of_lm_studio_the_window_that_is_loaded_counts(tmp_path: Path, kind: Kind) -> None:
    plain = {"data": [{"id": "loaded", "owned_by": "organization_owner"}]}

    found = facts_at(tmp_path, {"/v1/models": plain, "/api/v0/models": LMSTUDIO}, kind=kind)

    assert windows(found) == {"loaded": (4096, None), "seeing": (128000, None)}
    assert found["seeing"].reads == Modalities(image=True)


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_of_ollama_only_a_window_counts_that_it_reads(tmp_path: Path, kind: Kind) -> None:
    plain = {"data": [{"id": "run:8b", "owned_by": "library"}]}
    answers = {"/v1/models": plain, "/api/tags": TAGS, "/api/ps": PS}

    found = facts_at(tmp_path, answers, kind=kind, shown=SHOWN)

    expected = {"run:8b": (16384, None), "set:8b": (32768, None), "plain:8b": (None, None)}
    assert windows(found) == expected
    able = found["set:8b"]
    assert (able.toolcall, able.reasoning, able.reads) == (True, True, Modalities(image=True))
    assert (found["run:8b"].toolcall, found["plain:8b"].toolcall) == (False, None)
    assert found["plain:8b"].cost == ModelCost(input=0, output=0)


def test_a_server_that_only_names_such_an_owner_is_taken_by_its_list(tmp_path: Path) -> None:
    plain = {"data": [{"id": "m", "owned_by": "library", "context_length": 4096}]}

    assert windows(facts_at(tmp_path, {"/v1/models": plain})) == {"m": (4096, None)}


def test_anthropic_and_gemini_have_lists_of_their_own(tmp_path: Path) -> None:
    claude = facts_at(tmp_path, {"/v1/models": CLAUDE}, kind="anthropic")
    gemini = facts_at(tmp_path, {"/v1/models": GEMINI}, kind="gemini")

    assert windows(claude) == {"claude-x": (200000, 64000)}
    assert windows(gemini) == {"gemini-x": (1048576, 65536)}


@pytest.mark.parametrize(
    ("kind", "header"),
    [
        ("openai", ("authorization", "Bearer secret-key")),
        ("anthropic", ("x-api-key", "secret-key")),
        ("gemini", ("x-goog-api-key", "secret-key")),
    ],
)
def test_the_key_goes_where_each_looks_for_it(
    tmp_path: Path, kind: Kind, header: tuple[str, str]
) -> None:
    answer = GEMINI if kind == "gemini" else CLAUDE
    with serving({"/v1/models": answer}) as (url, asked):
        server = ListingServer(provider="mine", url=f"{url}/v1", kind=kind, key="secret-key")
        asyncio.run(ask_servers([server], tmp_path, local=True))

    [(_, headers)] = asked
    assert header in headers.items()


@pytest.mark.parametrize("answer", [None, {}, {"data": "no"}, 7, "text"])
def test_what_is_no_list_is_told_and_what_was_known_stays(tmp_path: Path, answer: object) -> None:
    facts_at(tmp_path, {"/v1/models": VLLM})
    with serving({"/v1/models": answer}) as (url, _):
        server = ListingServer(provider="mine", url=f"{url}/v1")
        [outcome] = asyncio.run(ask_servers([server], tmp_path, local=True))

    assert outcome == ListingOutcome(who="mine", error=outcome.error)
    assert outcome.error in {"status 404", "this is no list of models"}
    assert names_of("mine", "", tmp_path) == ("acme/m",)


@pytest.mark.parametrize(
    ("provider", "npm", "kind"),
    [
        ("ollama", "@ai-sdk/openai-compatible", "ollama"),
        ("mine", "@ai-sdk/openai-compatible", "openai"),
        ("mine", "@ai-sdk/anthropic", "anthropic"),
        ("google", "@ai-sdk/google", "gemini"),
    ],
)
def test_the_kind_of_a_provider_s_list(provider: str, npm: str, kind: Kind) -> None:
    assert kind_of(provider, npm) == kind
