"""The plugin is found beside its tests where it is not installed."""

import struct
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("pegboard_local") is None:
    sys.path.insert(0, str(Path(__file__).parents[1]))

LIBRARY = '''
"""Stands for llama.cpp: what it says is in the last message, and so is what it does."""

import json
import os
import time


class CommonParams:
    def __init__(self):
        self.model, self.cpuparams, self.cpuparams_batch = Part(), Part(), Part()


class Part:
    pass


class Server:
    def __init__(self, params):
        print("loading", params.model.path, flush=True)
        if params.model.path.endswith("damaged.gguf"):
            raise RuntimeError("Failed to init server")
        self.window = params.n_ctx

    def handle_chat_completions(self, body, callback):
        word = body["messages"][-1]["content"]
        if word == "crash":
            os._exit(9)
        if word == "silence":
            time.sleep(600)
        if word == "raise":
            raise RuntimeError("no such grammar")
        if word == "long":
            text = f"longer than {self.window}"
            callback({"error": {"message": text, "type": "exceed_context_size_error"}})
            return
        if "response_format" in body:
            word = json.dumps({"answer": word})
        for _ in range(10**9 if word == "forever" else 1):
            if callback({"choices": [{"index": 0, "delta": {"content": word}}]}):
                return
            time.sleep(0.01)
        counts = {"prompt_tokens": 9, "completion_tokens": 2}
        counts["prompt_tokens_details"] = {"cached_tokens": 4}
        callback({"choices": [{"index": 0, "finish_reason": "stop", "delta": {}}], "usage": counts})
'''


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an `xllamacpp` in the place of the real one, for the process that would load it."""
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "xllamacpp.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.fixture
def gguf(tmp_path: Path) -> Callable[..., Path]:
    """Write a file with a head of these numbers and texts, and no weights."""

    def written(name: str = "model.gguf", **head: str | int) -> Path:
        path = tmp_path / name
        path.write_bytes(_head({key.replace("__", "."): value for key, value in head.items()}))
        return path

    return written


def _head(entries: Mapping[str, str | int]) -> bytes:
    body = b"".join(_entry(key, value) for key, value in entries.items())
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + body


def _entry(key: str, value: str | int) -> bytes:
    if isinstance(value, int):
        return _text(key) + struct.pack("<II", 4, value)
    return _text(key) + struct.pack("<I", 8) + _text(value)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()
