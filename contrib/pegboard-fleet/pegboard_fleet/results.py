"""The results of a batch as files: lines of JSON, or predictions for SWE-bench."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from pegboard_fleet.state import BatchState

Form = Literal["jsonl", "preds"]
NAMES: dict[Form, str] = {"jsonl": "results.jsonl", "preds": "preds.json"}


def write_results(folder: Path, state: BatchState, form: Form) -> Path:
    """Write the results in place of older ones, and return the file; it blocks.

    `preds` is an object by the jobs' ids, as SWE-bench takes it; of several attempts at a job the
    last one counts.
    """
    place = folder / NAMES[form]
    file, name = tempfile.mkstemp(dir=folder, prefix=f".{place.name}.")
    with os.fdopen(file, "wb") as out:
        out.writelines(_lines(state, form))
    Path(name).replace(place)
    return place


def _lines(state: BatchState, form: Form) -> Iterator[bytes]:
    if form == "jsonl":
        for result in state.results:
            yield msgspec.json.encode(result) + b"\n"
        return
    preds = {
        each.id: {
            "instance_id": each.id,
            "model_name_or_path": each.model,
            "model_patch": each.patch,
        }
        for each in state.results
    }
    yield msgspec.json.encode(preds) + b"\n"
