"""Rules for the shell's builtins that take variable names, options or arithmetic."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

from pegboard_plugins.bash.environment import hijacks
from pegboard_plugins.bash.line import CommandCall, Rule
from pegboard_plugins.bash.programs import OPTIONS, is_single, literals, read_options
from pegboard_plugins.bash.reader import DECLARERS
from pegboard_plugins.bash.syntax import ANYTHING, CommandFeed, Piece, Word, text_word
from pegboard_plugins.bash.tables import words
from pegboard_plugins.bash.values import ARGUMENTS, MAY_BE_OPTION, Value

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DECLARES = re.compile(r"([A-Za-z_]\w*)(?:(\+?=)|$)", re.ASCII)
_SUM = re.compile(r"[\w\s+*/%<>=!&|^~?:,()-]*", re.ASCII)
_TAKEN = re.compile(r"\+[a-zA-Z]")
"""An option that is taken back."""
_SET_NAMES, _SHELL_OPTIONS = words("shell", "words", "set"), words("shell", "words", "shopt")
_NO_OPERAND = re.compile(r"-[vR]$")
_OF_ONE = re.compile(r"-[b-npq-uw-zG-S]")
_OF_TWO = re.compile(r"|\]|[=!<>]=?|-(eq|ne|lt|le|gt|ge|nt|ot|ef|a|o)")
"""The signs before an operand of a test, or after one."""
_ARRAYS = frozenset({"-a", "-A", "-ga", "-gA", "-ra", "-ax"})


def _give(call: CommandCall, words: Sequence[Word], value: Value) -> None:
    """Record `value` for the variables in `words`; reject variables that other programs obey."""
    for word in words:
        name = word.literal or ""
        if not _NAME.fullmatch(name):
            raise call.no("name", word)
        if hijacks(name, None):
            raise call.no("env-hijack", word)
        call.line.values.add(name, value)


def read(call: CommandCall) -> None:
    """Judge `read` and `mapfile`, which store input in variables; `-C` would run code."""
    options = read_options(call.words, OPTIONS[call.program], "builtin-option")
    arrays, fed = options.values("a"), call.one.fed or call.one.outer
    if any(word.literal not in ("", "\n") for word in options.values("d", "n", "N")):
        fed = None  # it is a part of what is read
    names = call.words[options.at :]
    _give(call, [*names, *arrays], fed)
    _give(call, names[1:], Word(()))  # for which nothing may be left
    call.line.values.add("REPLY" if call.program == "read" else "MAPFILE", fed)
    call.line.has_arrays |= bool(arrays) or call.program != "read"


def printf(call: CommandCall) -> None:
    """Judge `printf`, which stores its output in a variable if the option `-v` is given."""
    words = call.words
    first = words[0].literal if words else ""
    if first is None:
        _refuse_option(call, words[0])
    elif first.startswith("-v"):
        rest = words[1:] if first == "-v" else [words[0].behind(len("-v")), *words[1:]]
        is_plain = [word.literal for word in rest[1:2]] == ["%s"] and len(rest) == len("v%x")
        is_plain = is_plain and is_single(rest[-1])  # several words are glued to each other
        _give(call, rest[:1], rest[-1] if is_plain else CommandFeed("pipe", None, (call.one,)))


def declare(call: CommandCall) -> None:
    """Judge `declare`, `export` and similar builtins."""
    for word in call.words:
        text = word.pieces[0].text if word.pieces and word.pieces[0].kind == "text" else ""
        if text.startswith(("-", "+")):
            if not re.fullmatch(r"-[xrgp]+", word.literal or "") and word.literal not in _ARRAYS:
                raise call.no("builtin-option", word)
            continue
        found = _DECLARES.match(text)
        if found is None or (not found[2] and (word.literal is None or len(word.pieces) > 1)):
            raise call.no("name", word)
        if found[2]:
            value = word.behind(found.end())
            if word.is_quoted or call.one.words[0].raw not in DECLARERS:
                call.refuse_words(value, "name")
            call.line.assign(found[1], value, found[2])
            call.line.later.append(partial(_refuse_elements, call, value))


def _refuse_elements(call: CommandCall, value: Word) -> None:
    """Reject an array value in parentheses, because bash expands array elements again."""
    literal = value.pieces[0].text if value.pieces and value.pieces[0].kind == "text" else ""
    texts = call.line.values.texts(value)
    has_arrays = call.line.has_arrays or not _ARRAYS.isdisjoint(w.shown for w in call.words)
    if literal.startswith("(") or any(text.startswith("(") for text in texts):
        raise call.no("array", value)
    if has_arrays and any(text.startswith(ANYTHING) for text in texts):
        raise call.no("array", value)


def unset(call: CommandCall) -> None:
    """Judge `unset`; reject a variable that decides which programs run."""
    options = read_options(call.words, OPTIONS["unset"], "builtin-option")
    for word in call.words[options.at :]:
        if not _NAME.fullmatch(word.literal or "") or hijacks(word.literal or "", None):
            raise call.no("name", word)
        call.line.values.add(word.shown, Word(()))


def let(call: CommandCall) -> None:
    """Judge `let`, which evaluates its arguments as arithmetic."""
    for word, text in zip(call.words, literals(call.words, "calculation"), strict=True):
        if not _SUM.fullmatch(text):
            raise call.no("calculation", word)
        for name in re.findall(r"(?<!\w)[A-Za-z_]\w*", text):
            call.line.sums.setdefault(name, word.at)
            if re.search(rf"\b{name}\s*[-+*/%&|^<>]*=(?!=)", text):
                call.line.values.add(name, Word((Piece("sum", "", raw=text),)))


def test(call: CommandCall) -> None:
    """Judge `test`; reject `-v`, which evaluates the index of an array."""
    before = Word(())
    for word, after in pairwise([*call.words, Word(())]):
        is_settled = _OF_TWO.fullmatch("$" if after.literal is None else after.literal)
        is_operand = _OF_ONE.fullmatch(before.shown) or (is_settled and is_single(word))
        refused = _NO_OPERAND if is_operand or word.literal is not None else MAY_BE_OPTION
        call.refuse(word, "test-v", partial(_computes, refused, is_single(word)))
        before = word


def _computes(refused: re.Pattern[str], is_single: bool, text: str) -> bool:  # noqa: FBT001
    """Return whether a text may match the pattern `refused`, or may become several words."""
    return refused.match(text) is not None or (ANYTHING in text and not is_single)


def set_options(call: CommandCall) -> None:
    """Judge `set`, which changes the shell's options and arguments."""
    words = [text_word(f"-{w.shown[1:]}", w) if _TAKEN.match(w.shown) else w for w in call.words]
    options = read_options(words, OPTIONS["set"], "builtin-option")
    rest = call.words[options.at :]
    is_odd = rest and rest[0].literal in ("-", "+") and words[options.at - 1].literal != "--"
    if is_odd or any(word.literal not in _SET_NAMES for word in options.values("o")):
        raise call.no("builtin-option", call.words[0])
    for word in rest:
        call.line.values.add(ARGUMENTS, word, splits=True)


def shopt(call: CommandCall) -> None:
    """Judge `shopt`; reject options that change how bash reads a line."""
    for word in call.words:
        if word.literal not in _SHELL_OPTIONS:
            raise call.no("shell-option", word)


def jobs(call: CommandCall) -> None:
    """Judge `jobs`, which runs its arguments as a command if the option `-x` is given."""
    read_options(call.words, OPTIONS["jobs"], "builtin-option")


def wait(call: CommandCall) -> None:
    """Judge `wait`, which sets a variable if the option `-p` is given."""
    for word in call.words:
        if word.literal not in ("-n", "-f"):
            _refuse_option(call, word)


def _refuse_option(call: CommandCall, word: Word) -> None:
    """Reject a word that may become an option of a builtin."""
    call.refuse(word, "builtin-option", MAY_BE_OPTION.match)


def getopts(call: CommandCall) -> None:
    """Judge `getopts OPTIONS NAME`, which sets variables."""
    literals(call.words[:1], "name")
    _give(call, call.words[1:2], None)
    call.line.values.add("OPTARG", None)


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("read", "mapfile", "readarray"), read),
    "printf": printf,
    **dict.fromkeys(("declare", "typeset", "export", "local", "readonly"), declare),
    "unset": unset,
    "let": let,
    **dict.fromkeys(("test", "["), test),
    "set": set_options,
    "shopt": shopt,
    "wait": wait,
    "jobs": jobs,
    "getopts": getopts,
}
