"""What a line that is not known may destroy, by the words in it: no tree says more."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from pegboard_plugins.bash.tables import pattern, patterns

_QUOTES = re.compile(r"[\\'\"]")
_BLANKS = re.compile(r"\$\{?IFS\}?|(?<!\$)\{|[},!]")
_WORDS = re.compile(r"[^\s;|&()<>`]+|[;|&\n()<>`]")
_ENDS = frozenset(";|&\n()<>`")
_DELETES = re.compile(r"(.*/)?(rm|rmdir|shred|wipe|srm|rimraf|truncate|mkfs(\.\w+)?|unlink)")
_FILLED = re.compile(r"\s-I ?([^\s-]\S*)")
"""What stands for the input of xargs."""
_FORCES = re.compile(r"-\w*(r\w*f|f\w*r)\w*", re.IGNORECASE)
_SHOWN = 8
_NEEDS = patterns("programs", "needs")
_VITAL = pattern("programs", "vital")
_CODE_DESTROYS = pattern("programs", "code-destroys")
_ENVIRON = re.compile(r"(?<![\w.])/+proc\b.*(?<![.\w])environ\b", re.DOTALL)
_IN_PROC = re.compile(r"(?<![\w.])/+proc/\S*/([^\s/;|&()<>`]+)")
_ALL = re.compile(r"\[.*\]\*|\?\*|\*[?/]")


def destruction(text: str, home: str) -> str:
    """The words in a text that would destroy what is vital, or what nobody knows; empty if none.

    Quotes and backslashes count for nothing: what stands in them may be code.
    """
    plain = _BLANKS.sub(" ", _QUOTES.sub("", text))
    for name in _FILLED.findall(plain):
        plain = re.sub(rf"(?<=[\s/]){re.escape(name)}(?=\s|/|$)", "", plain)
    homes = ("~", home) if "HOME=" in text else ("~\0",)
    for words in _statements(plain):
        for at in [at for at, word in enumerate(words) if _may_destroy(word)][:_SHOWN]:
            behind = words[at + 1 :]
            targets = [each for each in behind if not each.startswith("-")]
            is_vital = any(_is_vital(each, home) or each.startswith(homes) for each in targets)
            if (is_vital or not targets) and _destroys(words[at], behind):
                return " ".join(words[at : at + _SHOWN])
    return ""


def code_destruction(code: str, home: str) -> str:
    """What in the code of an interpreter would destroy what is vital; empty where none is seen."""
    found = _CODE_DESTROYS.search(code)
    if found is not None:
        return found[0]
    destroyed = destruction(code, home)  # a line of a shell that the code runs
    return destroyed if " " in destroyed else ""


def tells_of_process(text: str) -> bool:
    """Whether the words of a text may name the file with what a process was given: its variables.

    As a wildcard or in a variable, too; quotes and backslashes count for nothing.
    """
    if "proc" not in (plain := _QUOTES.sub("", text)):
        return False
    last = (found[1] for found in _IN_PROC.finditer(plain))
    is_open = any("$" in name or fnmatchcase("environ", name) for name in last)
    return is_open or any(map(_ENVIRON.search, (text, plain)))


def _may_destroy(word: str) -> bool:
    name = word.rpartition("/")[2]
    return name in _NEEDS or "$" in word or _DELETES.fullmatch(name) is not None


def _destroys(word: str, behind: list[str]) -> bool:
    """Whether a word destroys what stands behind it, as far as the words tell."""
    name = word.rpartition("/")[2]
    if _DELETES.fullmatch(name):
        return True
    if "$" in word:  # what is told what `rm -rf` is told
        return any(map(_FORCES.fullmatch, behind))
    needs = _NEEDS.get(name)
    return needs is not None and any(re.match(needs, word) for word in behind)


def _is_vital(word: str, home: str) -> bool:
    above = [home.rsplit("/", cut)[0] for cut in range(home.count("/"))]
    fits = (fnmatchcase(path, word.rstrip("/")) for path in (*above, f"{home}/"))
    is_home = word.startswith("/") and any(fits)
    is_open = "$" in word or "%s" in word or _ALL.search(word) is not None
    return is_home or is_open or _VITAL.fullmatch(word) is not None


def _statements(text: str) -> Iterator[list[str]]:
    """The words between the signs that end a statement."""
    words: list[str] = []
    for word in _WORDS.findall(text):
        if word in _ENDS:
            yield words
            words = []
        else:
            words.append(word)
    yield words
