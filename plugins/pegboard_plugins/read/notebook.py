"""The text of the cells of Jupyter notebooks (nbformat 4)."""

from collections.abc import Iterator
from typing import Any

import msgspec

Lines = str | list[str]


class _Output(msgspec.Struct, frozen=True):
    output_type: str
    text: Lines = ""
    data: dict[str, Any] = {}
    ename: str = ""
    evalue: str = ""


class _Cell(msgspec.Struct, frozen=True):
    cell_type: str
    source: Lines = ""
    outputs: list[_Output] = []


class _Notebook(msgspec.Struct, frozen=True):
    cells: list[_Cell]


def cells_text(content: bytes) -> str | None:
    """Return a notebook's cells and outputs as text, or None if `content` is not a notebook.

    The text names the MIME types of images, and leaves out their content.
    """
    try:
        notebook = msgspec.json.decode(content, type=_Notebook)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    pieces = (
        line for number, cell in enumerate(notebook.cells, 1) for line in _cell_lines(number, cell)
    )
    return "\n".join(pieces)


def _cell_lines(number: int, cell: _Cell) -> Iterator[str]:
    yield f"[cell {number}: {cell.cell_type}]"
    yield _join(cell.source)
    for output in cell.outputs:
        yield f"[output of cell {number}]"
        yield _output_text(output)
    yield ""


def _output_text(output: _Output) -> str:
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    if output.text:
        return _join(output.text).rstrip("\n")
    plain = output.data.get("text/plain", "")
    text = _join(plain) if isinstance(plain, str | list) else ""
    others = ", ".join(sorted(set(output.data) - {"text/plain"}))
    return "\n".join(piece for piece in (text, f"({others})" if others else "") if piece)


def _join(lines: Lines) -> str:
    return lines if isinstance(lines, str) else "".join(str(line) for line in lines)
