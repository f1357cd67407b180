"""The results of a batch as a Parquet table; this module needs the package pyarrow."""

from collections.abc import Iterable
from typing import Any

import msgspec

from pegboard.errors import InvalidInputError
from pegboard_fleet.journal import JobResult


def parquet_table(results: Iterable[JobResult]) -> bytes:
    """Return a Parquet file with a row for each result, and the columns of the JSON lines.

    `started` and `ended` are instants in UTC, and `meta` is a JSON object as a string.

    :raises InvalidInputError: when pyarrow cannot be imported.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InvalidInputError(
            f"cannot write Parquet: pyarrow cannot be imported ({error}). "
            "Run: pip install 'pegboard-fleet[parquet]'"
        ) from error
    instant = pa.timestamp("ms", tz="UTC")
    check = pa.struct({"exit": pa.int64(), "output_tail": pa.string()})
    types = {
        "id": pa.string(),
        "attempt": pa.int64(),
        "status": pa.string(),
        "session_id": pa.string(),
        "answer": pa.string(),
        "patch": pa.string(),
        "check": check,
        "error": pa.string(),
        "refused": pa.int64(),
        "cost_usd": pa.float64(),
        "tokens": pa.int64(),
        "steps": pa.int64(),
        "started": instant,
        "ended": instant,
        "worker": pa.string(),
        "model": pa.string(),
        "pegboard": pa.string(),
        "labels": pa.list_(pa.string()),
        "meta": pa.string(),
    }
    table = pa.Table.from_pylist(list(map(_row, results)), schema=pa.schema(types))
    out = pa.BufferOutputStream()
    pq.write_table(table, out, compression="zstd")
    content: bytes = out.getvalue().to_pybytes()
    return content


def _row(result: JobResult) -> dict[str, Any]:
    row = msgspec.structs.asdict(result)
    return {
        **row,
        "check": result.check and msgspec.structs.asdict(result.check),
        "started": round(result.started * 1000),
        "ended": round(result.ended * 1000),
        "meta": msgspec.json.encode(result.meta).decode(),
    }
