"""Support for tests of batches: settings, a model that works, and the lines of the results."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.models.model_server import Answer, call, say, step_of

Jobs = Callable[..., str]
OK: dict[str, Any] = {"permission": {"*": "allow"}, "retry": {"attempts": 1, "cap_s": 0.01}}


def words_of(body: dict[str, Any]) -> str:
    """Return the job's prompt, without what plugins add."""
    return json.dumps([each for each in body["messages"] if each["role"] == "user"])


def worker(body: dict[str, Any]) -> Answer:
    """Write a file, then say so."""
    if step_of(body):
        return say("Written.")
    return call("write", {"filePath": "made.txt", "content": "apple\n"})


def results_of(out: Path) -> list[dict[str, Any]]:
    """Return the results of a batch's folder."""
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


def has_lines(file: Path, number: int) -> bool:
    """Return whether a file has so many lines."""
    return len(file.read_text().splitlines()) >= number
