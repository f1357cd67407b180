"""The results of a batch as JSON lines, SWE-bench predictions, a Parquet table or trajectories."""

import asyncio
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from pegboard import App, AppOptions
from pegboard.errors import InvalidInputError, NotFoundError
from pegboard_fleet.journal import JobResult
from pegboard_fleet.state import BatchState
from pegboard_plugins.cli.export.exporting import Wanted, export_session, write_export

Form = Literal["jsonl", "preds", "parquet", "atif"]
NAMES: dict[Form, str] = {
    "jsonl": "results.jsonl",
    "preds": "preds.json",
    "parquet": "results.parquet",
    "atif": "trajectories",
}
DATA = "data"
"""The folder of a batch that has the database of its sessions."""


async def write_results(folder: Path, state: BatchState, form: Form) -> Path:
    """Write the results in the format `form`, replace older results, and return the path.

    `preds` is the SWE-bench format, a JSON object with a prediction per job id. If a job has
    several attempts, the last one counts. `atif` is a folder with a trajectory for each attempt
    that has a session.

    :raises InvalidInputError: for `parquet` without pyarrow.
    """
    place = folder / NAMES[form]
    results = tuple(state.results)
    match form:
        case "jsonl":
            await asyncio.to_thread(_replace, place, b"".join(map(_line, results)))
        case "preds":
            await asyncio.to_thread(_replace, place, _predictions(results))
        case "parquet":
            from pegboard_fleet.parquet import parquet_table  # pyarrow is large, and an extra

            await asyncio.to_thread(_replace, place, parquet_table(results))
        case "atif":
            await _write_trajectories(folder, state, place)
    return place


async def _write_trajectories(folder: Path, state: BatchState, place: Path) -> None:
    await asyncio.to_thread(place.mkdir, exist_ok=True)
    options = AppOptions(data_dir=(folder / DATA).absolute())
    wanted = Wanted(form="atif", with_reasoning=True)
    async with App.open(folder, options) as app:
        for attempt in state.attempts.values():
            try:
                exported = await export_session(app, state.session_id(attempt), wanted)
            except (NotFoundError, InvalidInputError):  # it did not begin, or its prompt is missing
                continue
            file = place / f"{attempt.job.id}-{attempt.number}.json"
            await asyncio.to_thread(write_export, file, exported.content)


def _line(result: JobResult) -> bytes:
    return msgspec.json.encode(msgspec.structs.asdict(result)) + b"\n"


def _predictions(results: Iterable[JobResult]) -> bytes:
    predictions = {
        each.id: {
            "instance_id": each.id,
            "model_name_or_path": each.model,
            "model_patch": each.patch,
        }
        for each in results
    }
    return msgspec.json.encode(predictions) + b"\n"


def _replace(place: Path, content: bytes) -> None:
    file, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    with os.fdopen(file, "wb") as out:
        out.write(content)
    Path(name).replace(place)
