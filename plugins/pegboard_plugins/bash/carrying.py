"""Rules for commands that start other commands, or run code in their arguments."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise, takewhile

from pegboard.unstable import shell_fits
from pegboard_plugins.bash.line import CommandCall, Rule
from pegboard_plugins.bash.programs import (
    KINDS,
    OPTIONS,
    RUNNER_REFUSED,
    RUNNERS,
    WRAPPERS,
    ProgramOptions,
    is_single,
    literals,
    read_options,
)
from pegboard_plugins.bash.source import DEVICE
from pegboard_plugins.bash.syntax import ANYTHING, Statement, Word, lone
from pegboard_plugins.bash.tables import pattern, words
from pegboard_plugins.bash.values import ARGUMENTS, piped_text

_ASSIGNS = re.compile(r"([A-Za-z_]\w*)=")
_SHELL_NAMES = words("shell", "words", "named")
_TAKES_OPERANDS = re.compile(r"\$[@*0-9]|\$\{[@*0-9]")
_SET_UP = pattern("shell", "sets-up")
"""Tools whose output is meant for `eval`."""
_FIND_VALUED, _FIND_PLAIN, _FIND_ACTS = (
    words("programs", "find", name) for name in ("valued", "plain", "acts")
)
_GDB_PLAIN = frozenset({"-batch", "--batch", "-q", "-nx", "--nx", "-n", "--quiet", "--args"})
_FOLLOWS = re.compile(
    r"([rcnsql]|run|start|bt( full)?|where|continue|next|step|up|down|finish|quit|list)"
    r"|(b|break|tbreak) [\w:.+-]+|info (locals|args|frame|registers|threads)"
    r"|thread apply all bt( full)?|set (pagination|confirm) (off|on)"
)
"""Commands of gdb that run nothing but the program; source: its manual."""
_WITH_PLACE = frozenset({"direnv", "rustup"})
"""Of these a folder or a version stands before the command."""


def wrapper(call: CommandCall) -> None:
    """Judge a wrapper such as `env` or `xargs`: the wrapper's options, and the wrapped command."""
    grammar, words = WRAPPERS[call.program], call.words
    if call.program == "command" and words and words[0].literal in ("-v", "-V"):
        return
    if call.program == "nice" and words and re.fullmatch(r"-\d+", words[0].literal or ""):
        words = words[1:]
    options = read_options(words, grammar, "wrapper-option")
    rest: Sequence[Word] = words[options.at :]
    _refuse_values(call, options)
    if grammar.assigns:
        rest = _assigned(call, rest)
    folders = [] if call.program == "exec" else options.values("C", "chdir", "D")
    call.command.folder = next(reversed(folders), None)
    own, inner = rest[: grammar.operands], rest[grammar.operands :]
    _refuse_filled(call, inner)
    for word in own:
        if word.literal is None or word.literal.startswith("-"):
            raise call.no("wrapper-option", word)
    if not inner:
        _refuse_alone(call)
        return
    if call.program != "xargs":
        call.start(inner)
        return
    filled = next(iter(options.values("I")), None)
    placeholder = "" if filled is None else filled.literal or ""
    if filled is not None and (not placeholder or placeholder in inner[0].shown):
        raise call.no("dynamic-command", inner[0])
    call.start(inner, placeholder=placeholder, is_fed=True)


def _refuse_values(call: CommandCall, options: ProgramOptions) -> None:
    """Check the variables that `env -u` removes, and the file of `strace -o`."""
    for word in options.values("u", "unset") if call.program in ("env", "genv") else ():
        call.line.assign(word.shown, None)
    for word in options.values("o") if call.program == "strace" else ():
        if not re.match(r"[\w./~]", word.literal or ""):
            raise call.no("wrapper-option", word)


def _refuse_filled(call: CommandCall, inner: Sequence[Word]) -> None:
    """Reject an outer `xargs` placeholder in a wrapper's options or as the wrapped program."""
    placeholder = call.command.placeholder
    ahead = len(call.words) - len(inner) + 1 if call.program != "xargs" else len(call.words)
    for word in call.words[:ahead] if placeholder else ():
        if placeholder in word.shown:
            raise call.no("dynamic-command", word)


def _refuse_alone(call: CommandCall) -> None:
    """Reject a wrapper without a command if a caller such as `xargs` may append a command."""
    if call.command.is_fed:
        raise call.no("dynamic-command")
    if call.program == "exec" and call.one.fed is not None:
        raise call.no("redirection")


def _assigned(call: CommandCall, words: Sequence[Word]) -> Sequence[Word]:
    """Record the variable assignments at the start of the words; return the words after them."""
    at = 1 if words and words[0].literal == "-" else 0
    while at < len(words) and (words[at].literal is None or "=" in words[at].shown):
        found = _ASSIGNS.match(words[at].shown)
        if found is None or words[at].pieces[0].kind != "text":
            raise call.no("wrapper-option", words[at])
        value = words[at].behind(found.end())
        call.refuse_words(value, "wrapper-option")
        call.line.assign(found[1], value)
        at += 1
    return words[at:]


def shell(call: CommandCall) -> None:
    """Judge a shell such as `sh`, which runs code in its arguments, in a file or on its input."""
    words = call.words
    plain = list(takewhile(lambda word: word.literal is not None, words))
    options = read_options(plain, OPTIONS["shell"], "shell-option")
    rest = words[options.at :]
    refused = [word for word in options.values("o") if word.literal not in _SHELL_NAMES]
    if refused or (rest and rest[0].shown.startswith("+")):
        raise call.no("shell-option", [*refused, *rest][0])
    if any(name == "c" for name, _ in options.given):
        _coded(call, rest)
    elif rest and rest[0].literal != "-":
        if rest[0].literal is None or DEVICE.match(rest[0].literal):
            raise call.no("dynamic-code", rest[0])
    elif call.command.is_fed:
        raise call.no("dynamic-code")
    elif call.one.fed is not None:
        _fed(call)


def _coded(call: CommandCall, rest: Sequence[Word]) -> None:
    """Judge `sh -c CODE`, where the words after CODE become arguments of the code."""
    code = rest[0].literal if rest else None
    for word in rest[1:]:
        call.line.values.add(ARGUMENTS, word, splits=True)
    placeholder = call.command.placeholder
    if code is None or (call.command.is_fed and not placeholder):
        raise call.no("dynamic-code", rest[0] if rest else None)
    is_filled = bool(placeholder) and placeholder in code
    dynamic = any(word.literal is None for word in rest[1:]) and "$" in code
    if is_filled or dynamic or (rest[1:] and _TAKES_OPERANDS.search(code)):
        raise call.no("dynamic-code", rest[0])
    call.run(code, rest[0])


def _fed(call: CommandCall) -> None:
    """Judge the code that a shell reads from standard input."""
    word, fed = _code_fed(call), call.one.fed
    if word is None and fed is not None and fed.word is not None and fed.word.literal is None:
        raise call.no("code-on-stdin")
    if word is not None:
        if word.literal is None:
            raise call.no("code-on-stdin")
        call.run(word.literal, word)


def _code_fed(call: CommandCall) -> Word | None:
    """Return the code on a command's input; None without input, or for a script from a file."""
    fed = call.one.fed
    is_pipe = fed is not None and fed.kind == "pipe"
    if fed is None or fed.kind == "file" or (is_pipe and _shows_script(fed.parts)):
        return None
    word = piped_text(fed.parts) if is_pipe else fed.word
    if word is None:
        raise call.no("code-on-stdin")
    return word


def _shows_script(parts: Sequence[Statement]) -> bool:
    """Return whether the statements before a pipe are a single `cat` of a script file."""
    one = lone(parts)
    if one is None or one.redirections:
        return False
    texts = [word.literal or "" for word in one.words]
    is_cat = texts[:1] == ["cat"] and len(texts) == len(("cat", "file"))
    return is_cat and re.fullmatch(r"[\w./-]+\.(py|js|sh|rb|pl|sql)", texts[1]) is not None


def coder(call: CommandCall) -> None:
    """Judge an interpreter: reject code that a command prints; rules judge other code."""
    words = call.words
    texts = [word.literal or word.shown for word in words]
    call.line.snippets += texts
    for word in words:
        kinds = {piece.kind for piece in word.pieces}
        if "process" in kinds or (
            word is words[0] and word.literal is None and not kinds & {"text"}
        ):
            raise call.no("dynamic-code", word)
    for before, word in pairwise(words):
        is_code = re.fullmatch(r"-[A-Za-z0-9]*[ceEr]|--eval|--print|-p", before.literal or "")
        if is_code and any(piece.kind == "output" for piece in word.pieces):
            raise call.no("dynamic-code", word)
    names_script = any(not text.startswith("-") for text in texts)
    if call.command.is_fed and (not names_script or call.command.placeholder in texts):
        raise call.no("dynamic-code")
    if _reads_code(texts) and (code := _code_fed(call)) is not None:
        if any(piece.kind == "output" for piece in code.pieces):
            raise call.no("dynamic-code", code)
        call.line.snippets.append(code.shown)


def _reads_code(texts: Sequence[str]) -> bool:
    """Return whether an interpreter runs its input as code: without a script, or with `-`."""
    if "-" in texts or any(map(DEVICE.match, texts)):
        return True
    needs_no_input = any(
        re.match(r"-{1,2}(v|V|h|version|help)$|-\w*[cemrpSnE]", text) for text in texts
    )
    return not needs_no_input and all(text.startswith("-") for text in texts)


def evaluate(call: CommandCall) -> None:
    """Judge `eval` of literal code, or of the output of a tool that prints code for `eval`."""
    words = call.words[1:] if call.words and call.words[0].literal == "--" else call.words
    if len(words) == 1 and _SET_UP.fullmatch(words[0].raw.strip('"')):
        return
    if call.one.fed is not None and call.line.functions:
        raise call.no("code-on-stdin")  # a function that it calls may read that
    if words:
        call.command.stays = True
        call.run(" ".join(literals(words, "dynamic-code")), words[0])


def source(call: CommandCall) -> None:
    """Judge `source`, which runs a script file in the current shell; the file is not read."""
    words = call.words
    kinds = {piece.kind for piece in words[0].pieces} if words else {"output"}
    is_open = kinds & {"output", "process", "glob", "braces"} or not is_single(words[0])
    if is_open or words[0].shown.startswith("-"):
        raise call.no("dynamic-code")
    call.refuse(words[0], "dynamic-code", _may_be_any, whole=True)
    for word in words[1:]:
        call.line.values.add(ARGUMENTS, word, splits=True)


def _may_be_any(text: str) -> bool:
    return not text or DEVICE.match(text) is not None or ANYTHING in text


def trap(call: CommandCall) -> None:
    """Judge `trap CODE SIGNAL`."""
    words = [word for word in call.words if word.literal != "--"]
    if words and words[0].literal not in ("", "-", "-l", "-p"):
        call.run(literals(words[:1], "dynamic-code")[0], words[0])


def script(call: CommandCall) -> None:
    """Judge `script -c CODE`; without code, `script` opens a shell and is rejected."""
    options = read_options(call.words, OPTIONS["script"], "wrapper-option")
    codes = options.values("c", "command")
    if not codes:
        raise call.no("carrier")
    for word in codes:
        call.run(literals([word], "dynamic-code")[0], word)


def watch(call: CommandCall) -> None:
    """Judge `watch`, which runs its arguments in a shell."""
    options = read_options(call.words, OPTIONS["watch"], "wrapper-option")
    words = call.words[options.at :]
    if call.command.is_fed:
        raise call.no("dynamic-code")
    if words:
        call.run(" ".join(literals(words, "dynamic-code")), words[0])


def runner(call: CommandCall) -> None:
    """Judge a tool such as `uv run`, which may run another command of the project."""
    acts, words = RUNNERS[call.program].split(), call.words
    texts = [word.literal or "" for word in words]
    is_run = not acts or texts[:1] in ([act] for act in acts)
    refused = next((word for word in words if RUNNER_REFUSED.fullmatch(word.literal or "")), None)
    is_of_node = call.program in ("npm", "npx", "pnpm", "yarn", "bunx", "bun")
    if refused is not None and (is_of_node or not is_run):
        raise call.no("runner-option", refused)
    if call.program == "npm" and texts[:1] in (["x"], ["explore"], ["config"], ["set"], ["c"]):
        raise call.no("runner-option", words[0])
    if not is_run:
        if not {*acts}.isdisjoint(texts[:4]):
            raise call.no("runner-option", words[0])
        call.line.default(call)
        return
    rest = words[1:] if acts else words
    options = read_options(rest, OPTIONS.get(call.program, OPTIONS["runner"]), "runner-option")
    inner = rest[options.at + (call.program in _WITH_PLACE) :]
    if inner:
        call.start(inner)
    elif call.command.is_fed:
        raise call.no("dynamic-command")


def screen(call: CommandCall) -> None:
    """Judge `screen`, which is allowed only to start a command in the background."""
    if not re.match(r"-d ?-?m", " ".join(word.shown for word in call.words)):
        raise call.no("carrier")
    wrapper(call)


def gdb(call: CommandCall) -> None:
    """Judge `gdb`; only calls that just run a program are allowed."""
    words, at = call.words, 0
    if call.command.is_fed or call.one.fed is not None:
        raise call.no("code-on-stdin")
    while at < len(words) and (words[at].literal or "").startswith("-"):
        text = words[at].literal
        is_followed = text in ("-ex", "--ex") and at + 1 < len(words)
        if is_followed and not _FOLLOWS.fullmatch(words[at + 1].literal or ""):
            raise call.no("carrier", words[at + 1])
        if not is_followed and text not in _GDB_PLAIN:
            raise call.no("carrier", words[at])
        at += 1 + is_followed
        if text == "--args":
            break
    if at == len(words) or (words[at].literal or "-").startswith("-"):
        raise call.no("carrier")
    call.start(words[at:] if words[at - 1].literal == "--args" else words[at : at + 1])


def find(call: CommandCall) -> None:
    """Judge `find`: all words must be known, and the commands of `-exec` are judged."""
    words, at = call.words, 0
    if call.command.is_fed:
        raise call.no("find-test")
    while at < len(words):
        text = words[at].literal
        if text in _FIND_ACTS:
            at = _executed(call, at)
        elif text in _FIND_VALUED or text == "-fprintf":
            named = words[at + 1 : at + 2] if text.startswith(("-fp", "-fl")) else []
            at += 3 if text == "-fprintf" else 2
            is_known = all(map(is_single, words[:at])) and all(w.literal for w in named)
            if at > len(words) or not is_known:
                raise call.no("find-test", words[min(at, len(words)) - 1])
        elif text is None:
            call.refuse(words[at], "find-test", _may_be_test)
            at += 1
        elif text.startswith("-") and text not in _FIND_PLAIN:
            raise call.no("find-test", words[at])
        else:
            at += 1


def _may_be_test(text: str) -> bool:
    return text[:1] in ("-", "!", "(", ")", ANYTHING) or shell_fits(text, "-exec")


def _executed(call: CommandCall, at: int) -> int:
    """Judge the command after a `-exec`, and return the index after this command."""
    words = call.words
    end = next((k for k in range(at + 1, len(words)) if _ends(words, k)), None)
    if end is None or end == at + 1 or "{}" in words[at + 1].shown:
        raise call.no("dynamic-command", words[at])
    for word in words[at + 1 : end]:
        if word.literal is None or (word.literal == "{}" and words[at].shown.startswith("-ok")):
            call.refuse(word, "find-test", partial(_may_end, is_single(word)))
    call.start(words[at + 1 : end], placeholder="{}")
    return end + 1


def _ends(words: Sequence[Word], at: int) -> bool:
    """Return whether the `-exec` command ends at index `at`: at `;`, or at `+` after `{}`."""
    is_behind = words[at - 1].literal in ("{}", None)
    return words[at].literal == ";" or (words[at].literal == "+" and is_behind)


def _may_end(is_single: bool, text: str) -> bool:  # noqa: FBT001
    """Return whether a text may end the command of an `-exec`."""
    is_open = ANYTHING in text and not (is_single and text.strip(f"{ANYTHING};+{{}}"))
    return is_open or text in (";", "+", "{}") or any(shell_fits(text, sign) for sign in ";+")


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(WRAPPERS, wrapper),
    **dict.fromkeys((name for name, kinds in KINDS.items() if "shell" in kinds), shell),
    **dict.fromkeys(RUNNERS, runner),
    **dict.fromkeys(("find", "gfind"), find),
    **dict.fromkeys((".", "source"), source),
    "screen": screen,
    "gdb": gdb,
    "eval": evaluate,
    "trap": trap,
    "script": script,
    "watch": watch,
}
