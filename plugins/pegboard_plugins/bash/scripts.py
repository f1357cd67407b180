"""The languages of sed and awk, as far as a script of theirs neither runs nor names anything."""

import re
from collections.abc import Mapping
from functools import partial

from pegboard_plugins.bash.line import Call, Rule
from pegboard_plugins.bash.options import read_options
from pegboard_plugins.bash.programs import AWKS, Grammar
from pegboard_plugins.bash.syntax import Word
from pegboard_plugins.bash.values import ANYTHING

_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?|\\([^\w\s\\])(?:(?!\1)[^\\\n]|\\.)*\1)(?:~\d+)?"
_SED = re.compile(
    rf"\s*(?:{_ADDRESS}(?:,[+~]?(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?))?)?\s*!?\s*"
    r"(?:s([^\s\w\\;])(?:(?!\2)[^\\\n]|\\.)*\2(?:(?!\2)(?:[^\\]|\\.))*\2[gIipmM\d]*"
    r"|y([^\s\w\\;])(?:(?!\3)[^\\\n]|\\.)*\3(?:(?!\3)[^\\\n]|\\.)*\3"
    r"|[pPdDnNgGhHxlFz={}]|[qQ]\s*\d*|[bt:]\s*\w*"
    r"|[aic](?:\\\n|\\)?(?:[^\n\\]|\\.)*(?:\\\n[^\n]*)*)?\s*(?:#[^\n]*)?(?:[;\n}]|$|(?<=\{))",
    re.DOTALL,
)
"""One command of sed, the source of which is its manual; not `e`, `w`, `r` and `W`."""
_SED_OPTIONS = re.compile(
    r"-[nErsuz]*(i[\w.~-]*)?|--(in-place(=[\w.]*)?|quiet|silent|regexp-extended|null-data|version"
    r"|help|posix|sandbox|debug|separate|follow-symlinks)"
)
_SED_CODE = re.compile(r"-[nErsuz]*e|--expression")
_TAME_VALUE = re.compile(r"[\w .:,@%+=-]*")
_AWK_ACTS = re.compile(
    r"system\s*\(|getline|\||@|\bprintf?\b[^;}\n]*>|\bclose\s*\(|\bARGV\b|\bARGC\b|ENVIRON"
)
_AWK = Grammar("F:v:", "field-separator= assign=")


def sed(call: Call) -> None:
    """sed, with scripts that are read."""
    words, scripts, others, at = call.words, list[Word](), list[Word](), 0
    while at < len(words):
        text = words[at].literal
        if text is not None and _SED_CODE.fullmatch(text):
            scripts += words[at + 1 : at + 2]
            at += 2
            continue
        if text is not None and text.startswith("--expression="):
            scripts.append(words[at].behind(len("--expression=")))
        elif text is None or not text.startswith("-") or text == "-":
            others.append(words[at])
        elif not _SED_OPTIONS.fullmatch(text):
            raise call.no("sed-option", words[at])
        at += 1
    if call.command.is_fed and not (scripts or others):
        raise call.no("sed-script")
    for word in scripts or others[:1]:
        call.line.later.append(partial(_read_sed, call, word))
    for word in others[0 if scripts else 1 :]:
        call.line.later.append(partial(refuse_options, call, word, "sed-option"))


def refuse_options(call: Call, word: Word, code: str) -> None:
    """No option in a word that should be an operand."""
    if any(text.startswith("-") and text != "-" for text in call.line.values.words([word])):
        raise call.no(code, word)


def _read_sed(call: Call, word: Word) -> None:
    """Go through a script, in which tame values of variables count as a letter."""
    text = ""
    for piece in word.pieces:
        if piece.kind == "text":
            text += piece.text
            continue
        values = call.line.values.texts(Word([piece]))
        is_tame = piece.kind in ("sum", "variable") and (piece.quoted or piece.kind == "sum")
        if not is_tame or not all(map(_TAME_VALUE.fullmatch, values)) or ANYTHING in values:
            raise call.no("sed-script", word)
        text += "v" if piece.kind == "variable" else "1"
    at = 0
    while at < len(text):
        found = _SED.match(text, at)
        if found is None or found.end() == at:
            raise call.no("sed-script", word)
        at = found.end()


def awk(call: Call) -> None:
    """awk, with a program that neither runs nor opens anything."""
    options = read_options(call.words, _AWK, "awk-option")
    program = next(iter(call.words[options.at :]), None)
    if program is None or any(piece.kind not in ("text", "variable") for piece in program.pieces):
        raise call.no("awk-program", program)
    call.line.told.append(program.shown)
    call.line.later.append(partial(_refuse_acts, call, program))


def _refuse_acts(call: Call, program: Word) -> None:
    if any(map(_AWK_ACTS.search, (program.shown, *call.line.values.texts(program)))):
        raise call.no("awk-program", program)


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("sed", "gsed"), sed),
    **dict.fromkeys(AWKS, awk),
}
