"""Rules for sed, awk and git, whose scripts and options must not run other programs."""

import re
from collections.abc import Mapping, Sequence
from functools import partial

from pegboard_plugins.bash.line import CommandCall, Rule
from pegboard_plugins.bash.programs import KINDS, OPTIONS, git_words, read_options
from pegboard_plugins.bash.syntax import ANYTHING, Word, is_any
from pegboard_plugins.bash.tables import pattern, patterns, words

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
_SED_OPTIONS = pattern("programs", "sed-options")
_SED_CODE = re.compile(r"-[nErsuz]*e|--expression")
_TAME_VALUE = re.compile(r"[\w .:,@%+=-]*")
_AWK_ACTS = pattern("programs", "awk-acts")
_AWK_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_AWK_OTHERWISE = re.compile(r"""["#\\]|/[^/\n]*[{}()>][^/\n]*/""")
"""In front of a redirection these may hide a brace, or the sign itself."""
_AWK_TARGET = re.compile(r">>?\s*\0\s*(?=[;}\n]|$)")
_GIT_COMMANDS = words("git", "words", "commands")
_GIT_RUNS = patterns("git", "runs")
_TAME_SETTING, _HOOKED = pattern("git", "tame-setting"), pattern("git", "hooked")
_WILD = re.compile(r"\[|-.*[*?\[]|[*?]+$", re.DOTALL)
_GIT_MESSAGES = frozenset({"commit", "tag", "merge", "notes"})
_STASHES = frozenset({"push", "save", "-m", "--message"})
"""What has a message behind `-m`: of other commands that is an option without a value."""
_ANYWHERE = re.compile(r"--(exec|upload-pack|receive-pack|exec-path)(=|$)|ext::")


def sed(call: CommandCall) -> None:
    """Judge `sed`, in which scripts must neither run programs nor read or write files."""
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
    if call.gets_anything or (call.command.is_fed and not (scripts or others)):
        raise call.no("sed-script")
    for word in scripts or others[:1]:
        call.line.later.append(partial(_read_sed, call, word))
    for word in others[0 if scripts else 1 :]:
        call.refuse(word, "sed-option", partial(_may_be_option, word))


def _may_be_option(word: Word, text: str) -> bool:
    return (text.startswith("-") and text != "-") or is_open(word, text)


def is_filled(call: CommandCall, word: Word) -> bool:
    """Return whether a word contains the placeholder of a caller such as `xargs`."""
    return bool(call.command.placeholder) and call.command.placeholder in word.shown


def _read_sed(call: CommandCall, word: Word) -> None:
    """Check a sed script; a variable with harmless values counts as a letter."""
    text = ""
    if is_filled(call, word):
        raise call.no("sed-script", word)
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


def awk(call: CommandCall) -> None:
    """Judge `awk`, whose code must not run commands; the files that it writes are recorded."""
    options = read_options(call.words, OPTIONS["awk"], "awk-option")
    program = next(iter(call.words[options.at :]), None)
    if (
        program is None
        or is_filled(call, program)
        or any(piece.kind not in ("text", "variable") for piece in program.pieces)
    ):
        raise call.no("awk-program", program)
    call.line.snippets.append(program.shown)
    call.line.later.append(partial(_refuse_acts, call, program))


def _written(program: str) -> list[str]:
    """Return the files that an awk program writes with `print > "file"`.

    Outside of braces, or in parentheses, a `>` is a comparison.

    :raises ValueError: when a `>` cannot be classified, or its target is no plain string.
    """
    texts = _AWK_TEXT.findall(program)
    plain = _AWK_TEXT.sub("\0", program)
    if ">" not in plain:
        return []
    if _AWK_OTHERWISE.search(plain):
        raise ValueError(program)
    files, braces, parentheses = list[str](), 0, 0
    for at, sign in enumerate(plain):
        braces += {"{": 1, "}": -1}.get(sign, 0)
        parentheses += {"(": 1, ")": -1}.get(sign, 0)
        if sign != ">" or plain[at - 1] == ">" or not braces or parentheses:
            continue
        found = _AWK_TARGET.match(plain, at)
        text = texts[plain.count("\0", 0, at)] if found else "\\"
        if "\\" in text:
            raise ValueError(program)
        files.append(text.strip('"'))
    return files


def _refuse_acts(call: CommandCall, program: Word) -> None:
    values = call.line.values.texts(Word([p for p in program.pieces if p.kind == "variable"]))
    is_tame = all(map(_TAME_VALUE.fullmatch, values))
    if not is_tame or any(map(_AWK_ACTS.search, (program.shown, *call.line.values.texts(program)))):
        raise call.no("awk-program", program)
    try:
        call.command.writes += tuple(_written(program.shown))
    except ValueError:
        raise call.no("awk-program", program) from None


def is_open(word: Word, text: str) -> bool:
    """Return whether a word may become any option, as an unknown value or a wildcard may.

    A bare wildcard may, one with an ending hardly.
    """
    if text.startswith(ANYTHING):
        return is_any(text[:2])
    return word.literal is None and _WILD.match(text) is not None


def git(call: CommandCall) -> None:
    """Judge a git command: it must be known, and no option may make git run a program."""
    options = read_options(call.words, OPTIONS["git"], "git-option")
    for setting in options.values("c"):
        if not _TAME_SETTING.fullmatch(setting.shown):
            raise call.no("git-option", setting)
    words = call.words[options.at :]
    if not words and call.command.is_fed:
        raise call.no("git-command")
    if not words or options.values("v", "version"):
        return
    name = "help" if options.values("h", "help") else words[0].literal
    if name not in _GIT_COMMANDS:
        raise call.no("git-command", words[0])
    rest = _git_runs(call, name, words[words[0].literal == name :])
    call.line.later.append(partial(_refuse_options, call, name, rest))


def _git_runs(call: CommandCall, name: str, words: Sequence[Word]) -> Sequence[Word]:
    """Judge the commands that git runs for `bisect run`, `submodule foreach` and `rebase -x`.

    Return the words that are not part of them.
    """
    texts = [word.literal for word in words]
    if name == "bisect" and texts[:1] == ["run"] and words[1:]:
        call.start(words[1:])
        return ()
    if name == "submodule" and "foreach" in texts[:2]:
        behind = words[texts.index("foreach") + 1 :]
        inner = [word for word in behind if word.literal not in ("--recursive", "--quiet")]
        if len(inner) == 1 and inner[0].literal is not None:
            call.run(inner[0].literal, inner[0])
        elif inner:
            call.start(inner)
        return ()
    marks = [at for at, text in enumerate(texts) if name == "rebase" and text in ("-x", "--exec")]
    for at in marks:
        code = texts[at + 1] if at + 1 < len(texts) else None
        if code is None:
            raise call.no("dynamic-code", words[at])
        call.run(code, words[at + 1])
    read = {at + more for at in marks for more in (0, 1)}
    return [word for at, word in enumerate(words) if at not in read]


def _refuse_options(call: CommandCall, name: str, words: Sequence[Word]) -> None:
    runs, first = _GIT_RUNS.get(name), words[0].literal if words else ""
    takes_message = name in _GIT_MESSAGES or (name == "stash" and first in _STASHES)
    if runs is not None and call.gets_anything:
        raise call.no("git-option")
    for before, word in zip(["", *(each.literal for each in words)], words, strict=False):
        if word.literal == "--":
            return
        if takes_message and before in ("-m", "--message", "-F"):
            continue
        for text in call.line.values.words([word]):
            is_option = runs is not None and (re.match(runs, text) or is_open(word, text))
            if is_option or (name != "commit" and _ANYWHERE.match(text)):
                raise call.no("git-option", word)


def git_config(texts: Sequence[str]) -> str:
    """Return the file in which a `git config` makes git run a program, else ""."""
    words = git_words(texts)
    if words[:1] != ["config"] or len(words) <= len("ck"):
        return ""
    key = words[2 if words[1] == "set" or not {"-f", "--file"}.isdisjoint(texts) else 1]
    if key and ANYTHING not in key and not any(map(_HOOKED.fullmatch, texts)):
        return ""
    if words[1] in ("get", "list") or any(re.match(r"--get|--list$|-l$", text) for text in texts):
        return ""
    for at, text in enumerate(texts[:-1]):
        if text in ("-f", "--file"):
            return texts[at + 1]
    return "~/.gitconfig" if "--global" in texts else ".git/config"


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("sed", "gsed"), sed),
    **dict.fromkeys((name for name, kinds in KINDS.items() if "awk" in kinds), awk),
    "git": git,
}
