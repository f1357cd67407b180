"""How a file's text is laid down: a new one as EditorConfig says, an old one as it was."""

import re
from pathlib import Path

BOM = "\ufeff"
ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
LIMIT_BYTES = 64 << 10
LONGEST_PATH = 512
MOST_WILDCARDS = 3
"""In one section's name: what it is compared with as a regular expression stays below a second."""
_WILDCARDS = re.compile(r"\*+")


def as_configured(path: Path, text: str) -> str:
    """The text of a new file with the line ends, final newline and mark that EditorConfig names.

    Nothing else of it changes. Only `charset = utf-8-bom` has a mark, others are written in
    UTF-8. A configuration that cannot be read, or would take long to be, is as none.
    """
    if not _is_simple(path):
        return text
    from editorconfig import EditorConfigError, get_properties  # 8 ms, at the first new file

    try:
        said = get_properties(str(path))
    except (EditorConfigError, OSError, ValueError, re.error):
        return text
    if said.get("insert_final_newline") == "true" and text and not text.endswith(("\n", "\r")):
        text += "\n"
    if end := ENDS.get(said.get("end_of_line", "")):
        text = _with_ends(text, end)
    return _marked(text) if said.get("charset") == "utf-8-bom" else text


def as_before(before: str, text: str) -> str:
    """The text with the mark of the file that it replaces, and its line ends if they were CRLF.

    A text with carriage returns of its own has the line ends that it wants.
    """
    crlf = before.count("\r\n")
    if crlf and crlf == before.count("\n") and "\r" not in text:
        text = _with_ends(text, "\r\n")
    return _marked(text) if before.startswith(BOM) else text


def _with_ends(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", end)


def _marked(text: str) -> str:
    return text if text.startswith(BOM) else BOM + text


def _is_simple(path: Path) -> bool:
    """Whether there is a configuration, and no part of it could take long to be compared."""
    files = [folder / ".editorconfig" for folder in path.parents]
    there = [file for file in files if file.is_file()]
    return bool(there) and len(str(path)) <= LONGEST_PATH and all(map(_is_simple_file, there))


def _is_simple_file(file: Path) -> bool:
    try:
        with file.open("rb") as content:
            start = content.read(LIMIT_BYTES + 1)
    except OSError:
        return False
    names = (line for line in start.decode(errors="replace").splitlines() if "[" in line)
    return len(start) <= LIMIT_BYTES and all(
        len(_WILDCARDS.findall(name)) <= MOST_WILDCARDS for name in names
    )
