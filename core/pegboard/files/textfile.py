"""Text files: decoding of their bytes, and encoding of new text in the same way.

An existing file keeps its encoding, its byte order mark and its line ends. A new file gets the ones
that EditorConfig sets.
"""

import codecs
import re
from collections import Counter
from pathlib import Path

import msgspec

from pegboard.errors import ToolError

WESTERN = "cp1252"
"""The assumed encoding of a file that is neither UTF-8 nor recognisably another."""
BOM = "\ufeff"
_CHARSETS = {
    "latin1": ("latin-1", ""),
    "utf-8": ("utf-8", ""),
    "utf-8-bom": ("utf-8", BOM),
    "utf-16le": ("utf-16-le", BOM),
    "utf-16be": ("utf-16-be", BOM),
}
"""EditorConfig's names, with Python's and the mark. UTF-16 without a mark is not told again."""
_ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
_LINE_END = re.compile(r"(\r\n|\r|\n)")
_WILDCARDS = re.compile(r"\*+")
LIMIT_BYTES = 64 << 10
LONGEST_PATH = 512
MOST_WILDCARDS = 3
"""In one section's name: what it is compared with as a regular expression stays below a second."""


class FileText(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a text file, with its byte order mark if it has one, and its encoding.

    `encoding` is Python's name. It is "" for mixed or unknown encodings; bytes that are not UTF-8
    are then lone surrogates in `text`.
    """

    text: str
    encoding: str

    def encode(self, text: str, *, name: str) -> bytes:
        """Return the bytes of `text` in this file's encoding; errors name the file by `name`.

        :raises ToolError: for characters that the file's encoding lacks, or if the encoding is
          unknown.
        """
        if not self.encoding:
            added = Counter(filter(_is_foreign, text)) - Counter(filter(_is_foreign, self.text))
            if added:
                letter = next(iter(added))
                raise ToolError(
                    _half(letter)
                    or f"{name} is not in UTF-8, and its encoding is not known: {letter!r} cannot"
                    " be written to it, only ASCII can. Convert the file first"
                )
            return text.encode("utf-8", "surrogateescape")
        try:
            content = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise _lacking(self.encoding, error.object[error.start], name) from error
        # Shift-JIS and its like have a byte for a yen sign, which is a backslash when it is read.
        if not self.encoding.startswith("utf") and (read := content.decode(self.encoding)) != text:
            letter = next((a for a, b in zip(text, read, strict=False) if a != b), text[-1:])
            raise _lacking(self.encoding, letter, name)
        return content

    def replacement(self, text: str) -> "FileText":
        """Return the text as new content in this file's encoding, byte order mark and line ends.

        A text that contains carriage returns keeps its own line ends.
        """
        crlf = self.text.count("\r\n")
        if crlf and crlf == self.text.count("\n") and "\r" not in text:
            text = _with_ends(text, "\r\n")
        mark = BOM if self.text.startswith(BOM) else ""
        return FileText(text=_marked(mark, text), encoding=self.encoding)


def decode_text(content: bytes, *, name: str, whole: bool = True) -> FileText:
    """Decode a file: by its byte order mark, as UTF-8, or in an encoding guessed from its content.

    The guess is Windows-1252 if nothing in the content indicates another encoding. Without `whole`,
    the content may end within a character.

    :raises ToolError: for a file that is not in the encoding of its byte order mark.
    """
    from pegboard.files.encodings import content_encoding  # not before a file is read

    encoding = content_encoding(content, whole=whole)
    if not encoding:
        return FileText(text=content.decode("utf-8", "surrogateescape"), encoding="")
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(content, final=whole)
        return FileText(text=text, encoding=encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-8":
            return FileText(text=content.decode("utf-8", "surrogateescape"), encoding="")
        raise ToolError(
            f"{name} begins with the mark of {encoding}, and is not in it throughout: change it"
            " with bash"
        ) from error


def line_text(line: bytes, encoding: str) -> str:
    """Decode a line for display; invalid bytes become U+FFFD.

    An empty `encoding` means mixed encodings. The line is then decoded as UTF-8, or as Windows-1252
    if no non-ASCII byte is valid UTF-8.
    """
    if encoding:
        return line.decode(encoding, "replace")
    try:
        return line.decode()
    except UnicodeDecodeError:
        text = line.decode(errors="replace")
    western = line.decode(WESTERN, "replace")
    return text if "\ufffd" in western or not text.replace("\ufffd", "").isascii() else western


def new_text(path: Path, text: str) -> FileText:
    """Prepare the text of a new file: in UTF-8, with the settings of EditorConfig.

    It follows charset, end_of_line, insert_final_newline = true and trim_trailing_whitespace =
    true. A byte order mark in the text stays. A configuration that cannot be read, or not quickly,
    is ignored. This blocks while it reads files.
    """
    said = _configured(path)
    if said.get("trim_trailing_whitespace") == "true":
        text = "".join(piece.rstrip(" \t") for piece in _LINE_END.split(text))
    if said.get("insert_final_newline") == "true" and text and not text.endswith(("\n", "\r")):
        text += "\n"
    if end := _ENDS.get(said.get("end_of_line", "")):
        text = _with_ends(text, end)
    encoding, mark = _CHARSETS.get(said.get("charset", ""), ("utf-8", ""))
    return FileText(text=_marked(mark, text), encoding=encoding)


def _marked(mark: str, text: str) -> str:
    return mark + text.removeprefix(mark) if mark else text


def _is_foreign(letter: str) -> bool:
    return letter > "\x7f"


def _lacking(encoding: str, letter: str, name: str) -> ToolError:
    return ToolError(
        _half(letter)
        or f"{name} is in {encoding}, which has no {letter!r}: write it another way, or convert"
        " the file first"
    )


def _half(letter: str) -> str:
    """Return the error message for a lone surrogate, or "" for any other character."""
    return (
        "the text holds half a letter (a lone surrogate)" if "\ud800" <= letter < "\ue000" else ""
    )


def _with_ends(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", end)


def _configured(path: Path) -> dict[str, str]:
    """Return EditorConfig's settings for a path, or {} if the settings cannot be read quickly."""
    if not _is_simple(path):
        return {}
    from editorconfig import EditorConfigError, get_properties  # 8 ms, at the first new file

    try:
        return dict(get_properties(str(path)))
    except (EditorConfigError, OSError, ValueError, re.error):
        return {}


def _is_simple(path: Path) -> bool:
    """Return whether an EditorConfig file applies and all its patterns match fast."""
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
