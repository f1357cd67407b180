"""What changes the commands that come after it: variables, aliases, options of the shell."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pegboard_plugins.bash.environment import assigned, hijacks, names_program
from pegboard_plugins.bash.findings import ANYWHERE, MADE_UP, Findings
from pegboard_plugins.bash.hazards import names_parent
from pegboard_plugins.bash.origins import ARGUMENTS, Origin
from pegboard_plugins.bash.words import Word

CHANGERS = frozenset({"alias", "hash", "enable", "source", ".", "complete", "bind", "compgen"})
_ANYTHING = Word("$", dynamic=True)
DECLARERS = frozenset({"export", "declare", "local", "readonly", "typeset"})
_SUBSCRIPTED = DECLARERS | {"printf", "read", "test", "[", "unset", "let", "mapfile"}
_SUBSCRIPTED |= {"readarray", "getopts", "wait"}


def change(base: str, words: Sequence[Word], findings: Findings) -> None:
    """What builtins of the shell do to the commands that come after them."""
    texts = [word.text for word in words]
    if base in CHANGERS:
        findings.doubt("dynamic-code", unknown=_is_change(base, words, findings))
    if base in ("mapfile", "readarray") and any(text.startswith("-C") for text in texts):
        findings.doubt("dynamic-code", unknown=True)
    if base in DECLARERS and any(re.match(r"-[a-zA-Z]*n", text) for text in texts):
        findings.doubt("param-transform", unknown=True)  # one name for another's value
    if base in _SUBSCRIPTED and any(_is_subscript(text) for text in texts):
        findings.doubt("arith-eval", unknown=any(re.search(r"[$`]", text) for text in texts))
    findings.calculates |= base == "let"
    if base in ("read", "mapfile", "readarray", "getopts", "printf"):
        _assign_unknown(base, words, findings)
    if base in DECLARERS:
        named = [word for word in words if not re.match(r"\w+\+?=", word.text)]
        if any(word.dynamic and findings.is_unknown(word) for word in named):
            findings.doubt("env-hijack", unknown=True)
        assign(assigned(words), findings)
    if base == "set" and words:
        _set(texts, findings)


def _set(texts: Sequence[str], findings: Findings) -> None:
    """Options of the shell, and its arguments."""
    findings.values.clear()
    if any(not re.match(r"[-+]\w", text) for text in texts):
        findings.assign(ARGUMENTS, Origin.UNKNOWN)
    if not findings.branches:
        findings.strict = _exits_on_failure(texts, strict=findings.strict)


def _is_change(base: str, words: Sequence[Word], findings: Findings) -> bool:
    """Whether nobody can say which commands there are afterwards."""
    if base in ("source", "."):
        return (
            not words
            or words[0].text.startswith(("/dev/", "/proc/", "<("))
            or findings.is_unknown(words[0])
        )
    if base == "alias":
        return any("=" in word.text for word in words)
    return base not in ("complete", "compgen") and any(word.text != "-r" for word in words)


def _exits_on_failure(texts: Sequence[str], *, strict: bool) -> bool:
    """Whether the shell ends with the first command that fails, after a `set`."""
    for before, text in pairwise(["", *texts]):
        is_named = text == "errexit" and re.fullmatch(r"[-+]\w*o", before) is not None
        if is_named or re.fullmatch(r"[-+][A-Za-z]*e[A-Za-z]*", text):
            strict = (before if is_named else text).startswith("-")
    return strict


def _is_subscript(text: str) -> bool:
    """Whether a name has an index that the shell would calculate: `a[$(rm x)]`."""
    found = re.match(r"-?v?\w*\[(.*)", text, re.DOTALL)
    return found is not None and re.search(r"[$`A-Za-z_]", found[1].rpartition("]")[0]) is not None


def _assign_unknown(base: str, words: Sequence[Word], findings: Findings) -> None:
    names = [word.text for word in words if re.fullmatch(r"[A-Za-z_]\w*", word.text)]
    if base == "printf" and not any(word.text.startswith("-v") for word in words):
        return
    is_told = base not in ("printf", "getopts") and findings.fed is not None
    origin = findings.fed.origin if is_told and findings.fed else Origin.UNKNOWN
    for name in [*names, "REPLY", "MAPFILE"]:
        hijack(name, _ANYTHING, findings)
        findings.assign(name, origin)
        if findings.fed and names_parent(findings.fed.text, findings):
            findings.parents.add(name)


def assign(pairs: Sequence[tuple[str, Word]], findings: Findings) -> None:
    """Note what variables hold from here on, and which of them make programs run others.

    A value is appended where the name ends in a plus.
    """
    for written, word in pairs:
        value = replace(word, splits=False)
        name = written.removesuffix("+")
        hijack(name, value, findings)
        values = findings.known(value)
        texts: frozenset[str] | Origin
        if values is None:
            texts = findings.certainty(value)
        else:
            texts = frozenset(map(findings.without_tilde, values))
        if name != written:
            texts = _appended(findings.values.get(name), texts)
        if name == "HOME" and isinstance(texts, frozenset):
            findings.home = min(texts, default=findings.home, key=len)
        findings.assign(name, _made_up(value) or texts)
        if names_parent(value.text, findings):
            findings.parents.add(name)


def assign_each(name: str, words: Sequence[Word], findings: Findings) -> None:
    """What the variable of a loop holds: one of these words, or of the shell's arguments."""
    hijack(name, _ANYTHING, findings)
    if any(names_parent(word.text, findings) for word in words):
        findings.parents.add(name)
    held = [(word, findings.known(word)) for word in words]
    texts = frozenset(findings.without_tilde(each) for _, known in held for each in known or ())
    unknown = [findings.certainty(word) for word, known in held if known is None]
    said = findings.values.get(ARGUMENTS)
    of_arguments = said if isinstance(said, Origin) else Origin.LISTING
    if texts:
        findings.assign(name, Origin.UNKNOWN if unknown else texts)
    else:
        findings.assign(name, max(unknown, default=of_arguments))


def hijack(name: str, value: Word, findings: Findings) -> None:
    """Doubt a variable with which a program can be made to run another one."""
    if hijacks(name, value):
        known = findings.known(value)
        is_unknown = known is None and findings.is_unknown(value)
        own = [text for text in (findings.home, *findings.cwd) if text not in ("/", ANYWHERE)]
        texts = [findings.without_tilde(each) for each in known or (value,)]
        for folder in own:
            texts = [text.replace(folder, "~") for text in texts]
        runs = any(names_program(name, text) for text in texts)
        findings.doubt("env-hijack", unknown=is_unknown or runs)


def _appended(
    held: frozenset[str] | Origin | None, texts: frozenset[str] | Origin
) -> frozenset[str] | Origin:
    """The values with others behind them, and as they were: some assignments are told twice."""
    if isinstance(held, frozenset) and isinstance(texts, frozenset):
        return held | {before + after for before in held for after in texts}
    if isinstance(held, frozenset) or isinstance(texts, frozenset) or held is None:
        return Origin.UNKNOWN
    return max(held, texts)


def _made_up(value: Word) -> frozenset[str] | None:
    if re.fullmatch(r"\$\(mktemp(\s+-[dqu]+)*\)", value.text):
        return frozenset({MADE_UP})
    return None
