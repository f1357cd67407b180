"""A coarse search of unparsed text for words that together would destroy vital files.

It is used for unclear lines and for the code of interpreters. A needless question costs little.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence

from pegboard.unstable import shell_fits
from pegboard_plugins.bash.tables import pattern, patterns

_QUOTES = re.compile(r"[\\'\"]")
_EMPTY = re.compile(r"\$\(\s*\)|``|\$[@*1-9]|\$\{[^{}]*\}")
"""What comes to nothing in a word, or may."""
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|0?([0-7]{3})|[nrtfv])")
_ENCODED = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")
_HEX = re.compile(r"\b(?:[0-9a-fA-F]{2}){6,}\b")
_RENAMED = re.compile(
    r"\b(?:cp|install|link|ln|mv)\b[^;|&\n]*?(?:which |-v |-[pP] |/s?bin/)"
    r"(\w[\w.-]*)\)?['\"]?\s+(?:\./)?([\w.-]+)"
)
_TRANSLATED = re.compile(r"\btr\s+['\"]?([^\s'\"]+)['\"]?\s+['\"]?([^\s'\"]+)['\"]?")
_RANGE = re.compile(r"(.)-(.)", re.DOTALL)
_WORDS = re.compile(r"\$\{?\w+|[\w./~*?\[\]-]+|[;|&\n()<>`]")
"""Words are parted at every sign that is no letter of a path or of a wildcard."""
_SIGNS = frozenset(";|&\n()<>`")
_DELETERS = ("rm", "rmdir", "shred", "wipe", "srm", "rimraf", "truncate", "unlink")
_DELETES = re.compile(rf"{'|'.join(_DELETERS)}|mkfs(\.\w+)?")
_OF_SYSTEM = re.compile(r"(/usr)?/s?bin/[^/]*$")
_GLUED = re.compile(r"-[A-Za-z][a-z]")
_FILLED = re.compile(r"\b(?:xargs|parallel)\b[^|;&\n]*?\s-I ?([^\s-]\S*)")
"""The placeholder for the input of xargs."""
_ACTS = frozenset({"-delete", "--remove-files"})
_FINDS_ANYWHERE = re.compile(r"\bfind\s+['\"]?[$`][^\n]*\s-(delete|exec|ok)")
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\s([^;\n]*)")
_OF_FILES = re.compile(r"(?<![^\s/])\*(?=\s|$)|\$\(|`")
_WRITES = r"\s(?:-[oO]|--output(?:-document)?)[\s=]*['\"]?\$\{{?{}\b"
_MOVES_IN = re.compile(r"-[a-zA-Z]*m[a-zA-Z]*|--move")
"""With these zip deletes what goes into its archive."""
_FORCES = re.compile(r"-\w*(r\w*f|f\w*r)\w*", re.IGNORECASE)
_HOMES = re.compile(r"~.*|\$\{?HOME|HOME", re.DOTALL)
_ROOT = re.compile(r"/+[.*?]*/?")
_HISTORY = re.compile(r"(.*/)?\.git(/.*)?", re.DOTALL)
_ALL = re.compile(r"\[.*\]\*|\?\*|\*[?/]")
_SHOWN = 8
_NEEDS = patterns("programs", "needs")
_VITAL = pattern("programs", "vital")
_CODE_DELETES, _CODE_VITAL = pattern("programs", "code-deletes"), pattern("programs", "code-vital")
_CODE_DESTROYS = pattern("programs", "code-destroys")


def destruction(text: str, folders: Sequence[str]) -> str:
    """Return the words of a line that would destroy vital or unknown files; "" without any.

    `folders` are vital, such as the home and the project. A deleting word and a vital path anywhere
    in the line are enough. Quotes and backslashes are ignored, and encoded text is decoded.
    """
    found = _CODE_DESTROYS.search(text) or _FINDS_ANYWHERE.search(text)
    if found is not None:
        return found[0]
    if written := next(_each_written(text), ""):
        return written
    for variant in _variants(text):
        words = _WORDS.findall(variant)
        if destroyed := _in_statement(words, folders) or _in_line(words, folders):
            return destroyed
    return ""


def _each_written(text: str) -> Iterator[str]:
    """Yield the statements in loops that overwrite each looped file without reading that file."""
    for loop in [each for each in _LOOP.finditer(text) if _OF_FILES.search(each[2])][:_SHOWN]:
        writes = re.compile(_WRITES.format(loop[1]))
        value = re.compile(rf"(?<!\S)['\"]?\$\{{?{loop[1]}\}}?['\"]?(?!\S)")
        for statement in re.split(r"[;|&\n]", text[loop.end() :]):
            if writes.search(statement) and len(value.findall(statement)) == 1:
                yield statement.strip()


def line_destruction(text: str, folders: Sequence[str]) -> str:
    """Return a deleting word and a vital path in a shell line; "" if either is missing.

    The check is for lines in which only the names of some files are unknown.
    """
    found = (_in_line(_WORDS.findall(variant), folders) for variant in _variants(text))
    return next(filter(None, found), "")


def is_deleter(path: str) -> bool:
    """Return whether a path, or a wildcard path, names a system program that deletes."""
    return _OF_SYSTEM.match(path) is not None and _deletes(path)


def code_destruction(code: str, folders: Sequence[str]) -> str:
    """Return the words in an interpreter's code that would destroy vital files; "" without any.

    A deleting program and a vital path count if they are in the same statement.
    """
    found = _CODE_DESTROYS.search(code)
    if found is not None:
        return found[0]
    if (call := _CODE_DELETES.search(code)) and (target := _CODE_VITAL.search(code)):
        return f"{call[0]} {target[0]}"
    for variant in _variants(code):
        if " " in (destroyed := _in_statement(_WORDS.findall(variant), folders)):
            return destroyed
    return ""


def _variants(text: str) -> Iterator[str]:
    """Yield the text without quotes, and the text after decodings such as base64 or `rev`."""
    yield from _parted(text)
    if re.search(r"\brev\b", text):
        yield from _parted(text[::-1])
    if _EMPTY.search(text):
        yield from _parted(_EMPTY.sub("", text))
    if "\\" in text:
        yield from _parted(_ESCAPED.sub(_unescaped, text))
    for program, name in _RENAMED.findall(text):
        yield from _parted(re.sub(rf"(?<!\S)(\./)?{re.escape(name)}(?=\s)", program, text))
    for first, second in _TRANSLATED.findall(text):
        yield from _parted(text.translate(_translation(_letters(first), _letters(second))))
    for encoded in _HEX.findall(text):
        yield bytes.fromhex(encoded).decode("latin-1")
    for encoded in _ENCODED.findall(text):
        try:
            yield b64decode(encoded).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            continue


def _letters(text: str) -> str:
    """Return all characters in a set of `tr`, with ranges such as `a-z` written out."""
    return _RANGE.sub(lambda r: "".join(map(chr, range(ord(r[1]), ord(r[2]) + 1))), text)


def _translation(first: str, second: str) -> Mapping[int, str]:
    """Return the character that `tr` puts for each in `first`; the last of `second` repeats."""
    return {ord(a): second[min(at, len(second) - 1)] for at, a in enumerate(first)}


def _unescaped(found: re.Match[str]) -> str:
    if found[1] or found[2]:
        return chr(int(found[1], 16) if found[1] else int(found[2], 8))
    return "\n"


def _parted(text: str) -> Iterator[str]:
    """Yield the text without quotes and without placeholders of `xargs`."""
    joined = _QUOTES.sub("", text)
    for filled in dict.fromkeys((joined, _QUOTES.sub(" ", text))):
        plain = filled.replace("$IFS", " ").replace("${IFS}", " ")
        for name in _FILLED.findall(joined):
            plain = re.sub(rf"(?<=[\s/]){re.escape(name)}(?=\s|/|$)", "", plain)
        yield plain


def _in_line(words: Sequence[str], folders: Sequence[str]) -> str:
    deleter = next((w for w in words if _deletes(w) or _FORCES.fullmatch(w) or w in _ACTS), "")
    if "zip" in map(_name, words):
        deleter = deleter or next(filter(_MOVES_IN.fullmatch, words), "")
    target = next((word for word in words if _is_sacred(word, folders)), "")
    return f"{deleter} {target}" if deleter and target else ""


def _in_statement(words: Sequence[str], folders: Sequence[str]) -> str:
    """Return the words of a statement that destroys vital or unknown files; "" if there is none."""
    for statement in _statements(words):
        for at in [at for at, word in enumerate(statement) if _may_destroy(word)][:_SHOWN]:
            behind = statement[at + 1 :]
            targets = [each for each in behind if not each.startswith("-")]
            is_vital = any(_is_sacred(each, folders) or _is_vital(each) for each in targets)
            if (is_vital or not targets) and _destroys(statement[at], behind):
                return " ".join(statement[at : at + _SHOWN])
    return ""


def _name(word: str) -> str:
    name = word.rpartition("/")[2]
    return name[len("-x") :] if _GLUED.match(name) else name


def _deletes(word: str) -> bool:
    """Return whether a word, perhaps with wildcards, names a program that deletes."""
    is_named = re.search(r"/s?bin/|/[^/]*[a-z][^/]*$", word) is not None
    if is_named and any(sign in word for sign in "*?["):
        return any(shell_fits(f"/bin/{_name(word)}", f"/bin/{each}") for each in _DELETERS)
    return _DELETES.fullmatch(_name(word)) is not None


def _may_destroy(word: str) -> bool:
    return _name(word) in _NEEDS or word.startswith("$") or _deletes(word)


def _destroys(word: str, behind: Sequence[str]) -> bool:
    """Return whether the program `word` with the arguments `behind` destroys its operands."""
    if _deletes(word):
        return True
    if word.startswith("$"):  # an unknown program with the options of `rm -rf`
        return any(map(_FORCES.fullmatch, behind))
    needs = _NEEDS.get(_name(word))
    return needs is not None and (not needs or any(re.match(needs, each) for each in behind))


def _is_sacred(word: str, folders: Sequence[str]) -> bool:
    """Return whether a word is a home, the root, one of `folders` or a git history."""
    if _HOMES.fullmatch(word) or _ROOT.fullmatch(word) or _HISTORY.fullmatch(word):
        return True
    path = word.rstrip("/*.")
    return path.startswith("/") and any(
        f"{folder}/".startswith(f"{path}/") or shell_fits(path, folder) for folder in folders
    )


def _is_vital(word: str) -> bool:
    is_open = "$" in word or "%s" in word or _ALL.search(word) is not None
    return is_open or _VITAL.fullmatch(word) is not None


def _statements(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of each statement of a shell line."""
    found: list[str] = []
    for word in words:
        if word in _SIGNS:
            yield found
            found = []
        else:
            found.append(word)
    yield found
