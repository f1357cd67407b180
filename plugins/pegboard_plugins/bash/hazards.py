"""Commands that destroy files or processes that they do not name, such as untracked files."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from pegboard.unstable import shell_fits
from pegboard_plugins.bash.findexpression import acted_on, start_texts
from pegboard_plugins.bash.findings import WalkState
from pegboard_plugins.bash.listings import finds
from pegboard_plugins.bash.programs import destroys, git_words
from pegboard_plugins.bash.syntax import CommandFeed, Operand, Statement, StatementBlock, Word
from pegboard_plugins.bash.tables import pairs
from pegboard_plugins.bash.values import Value

_DRY = re.compile(r"-[a-zA-Z]*[nh][a-zA-Z]*|--dry-run|--help")
_DEEP = re.compile(r"-[a-zA-Z]*[dxX][a-zA-Z]*")
_EVERYWHERE = re.compile(r":/|:\(.*|\*")
_SIGNAL = re.compile(r"-(?:\d+|[A-Za-z][A-Za-z0-9]*)")
_SIGNAL_OPTIONS = frozenset({"-s", "-n", "--signal"})
_NOT_ONES_OWN = re.compile(r"-1|0*1|.*(?:ppid|pegboard).*", re.IGNORECASE | re.DOTALL)
_SELECTS = re.compile(r"-[GPUgstu]|--(?:parent|group|pgroup|session|terminal|signal)")
_BY_USER = re.compile(r"-[a-zA-Z]*[uU]|--(?:euid|uid|user)(?:=.*)?")
_LISTS_PROCESSES = re.compile(
    r"(?:^|[\s;&|(`])(?:ps|top|pgrep|pidof|lsof|fuser)\b(?P<rest>[^|)`]*)"
)
_SOUGHT = re.compile(
    r"grep\s+(?P<options>(?:-\S+\s+)*)(?P<quote>['\"]?)(?P<word>.+?)(?P=quote)(?=\s*(?:\||\)|`|$)|\s)"
    r"|awk\s+(?:-\S+\s+)*['\"]/(?P<pattern>[^/]+)/"
)
_ONE_PROCESS = re.compile(r"\s-[A-Za-z]*[pC]\b|\s--p?pid\b")
_BY_NAME = re.compile(r"-i?(name|path|wholename|regex)|-samefile")
_HISTORY = {
    ".git": True,
    **dict.fromkeys((f".git/{name}" for name in ("HEAD", "config", "index", "packed-refs")), False),
    **dict.fromkeys((f".git/{name}" for name in ("hooks", "objects", "refs", "logs")), True),
    ".git/hooks/pre-commit": False,
}
_OWN = "pegboard"
_OWN_NAMES = (_OWN, "python3", "python")
_OWN_LINE = "python3 -m pegboard run"
_LONGEST_SOURCE = 2000
_DEEPEST = 4
_ENDS = "it would end Pegboard, or more than was started here"
_QUOTES = re.compile(r"[\\'\"]")
_ENVIRON = re.compile(r"(?<![\w.])/+proc\b.*(?<![.\w])environ\b", re.DOTALL | re.IGNORECASE)
_IN_PROC = re.compile(r"(?<![\w.])/+proc/\S*/([^\s/;|&()<>`]+)")
_HAZARDS = pairs("programs", "hazards")
"""By program, patterns of words that endanger what the command does not name, and why."""


def endanger(base: str, words: Sequence[Word], findings: WalkState) -> None:
    """Record a command as a hazard if it may destroy vital things that its words do not name."""
    rule, row = _RULES.get(base), _HAZARDS.get(base)
    if rule is None and row is None:
        return
    text = " ".join(word.shown for word in words)
    fitting = (reason for pattern, reason in row or () if re.search(pattern, text))
    reason = next(fitting, "") or (rule(words, findings) if rule else "")
    if reason:
        findings.hazards[f"{base} {text}" if text else base] = reason


def _texts(words: Sequence[Word]) -> list[str]:
    return [word.shown for word in words]


def _working(words: Sequence[Word], findings: WalkState) -> str:
    """Return why a `git` command is a hazard; "" if it is not a hazard.

    It may delete untracked files, or run programs that another repository names.
    """
    return _cleaning(words, findings) or _nested(findings)


def _nested(findings: WalkState) -> str:
    """Return why `git` in another repository than the first folder's is a hazard, or "".

    Such a repository may make git run programs. For the first repository, the user is warned when
    the session begins.
    """
    own, *_ = findings.values.been or ("",)
    tops = dict.fromkeys(map(_top, findings.cwd))
    for top in tops if tops.keys() - {"", _top(own)} else ():
        from pegboard_plugins.shared.frontend import (
            running_settings,  # few lines go to another repository
        )

        named = running_settings([Path(top, ".git")]) if top not in ("", _top(own)) else ()
        if settings := [name for name in named if not name.startswith("hooks/")]:
            return f"the repository in {top} has git run programs: {', '.join(settings)}"
    return ""


def _top(folder: str) -> str:
    """Return the top folder of the repository around a folder; "" outside of repositories."""
    places = (folder, *map(str, Path(folder).parents))
    return next((each for each in places if os.path.isdir(f"{each}/.git")), "")  # noqa: PTH112 - text


def _cleaning(words: Sequence[Word], findings: WalkState) -> str:
    """Return why a `git clean` or `git stash` loses untracked files, or "" if it does not."""
    operands = findings.operands(words)
    texts = [word.text for word in operands]
    if git_words(texts)[:1] == ["stash"] and _takes_home(texts, findings):
        return "it would take away all files of a home that git does not track"
    if git_words(texts)[:1] != ["clean"]:
        return ""
    words_before = pairwise(["", *texts])
    at = next(
        at for at, (before, text) in enumerate(words_before) if text == "clean" and before != "-C"
    )
    options = [text for text in texts[at:] if text.startswith("-")]
    is_deep = any(map(_DEEP.fullmatch, options)) or findings.renamed
    if any(map(_DRY.fullmatch, options)) or not is_deep:
        return ""
    named = [
        word
        for before, word in pairwise(operands[at:])
        if not word.text.startswith("-") and before.text not in ("-e", "--exclude")
    ]
    folder = next((texts[at + 1] for at in range(at) if texts[at] == "-C"), ".")
    for word in named or [Operand(".")]:
        inside = Operand(f"{folder}/{word.text}", bare=False)
        is_all = word.open or _EVERYWHERE.fullmatch(word.text) is not None
        tops = [f"{path}/.git" for path in findings.places(inside)]
        if is_all or findings.makes_repository or any(map(os.path.lexists, tops)):
            return "it would delete all files that git does not track, which nothing brings back"
    return ""


def _takes_home(texts: Sequence[str], findings: WalkState) -> bool:
    """Return whether a `git stash` takes untracked files in a home folder."""
    takes = any(
        re.fullmatch(r"-[a-z]*[ua][a-z]*|--(include-untracked|all)", text) for text in texts
    )
    return takes and any(os.path.normpath(path) == findings.home for path in findings.cwd)


def _finding(words: Sequence[Word], findings: WalkState) -> str:
    """Return why a `find` is a hazard, or "" if it is not a hazard.

    It is a hazard if it finds a home or the project's git history by name and removes it.
    """
    texts = [text for word in words for text in findings.values.texts(word)]
    runs = any(text.startswith(("-exec", "-ok")) for text in texts)
    if "-delete" not in texts and not (runs and any(map(destroys, texts))):
        return ""
    if not any(map(_BY_NAME.fullmatch, texts)):
        return ""  # the folder where it starts decides
    files = {
        f"{start.rstrip('/')}/{name}": is_folder
        for start in start_texts(texts)
        for name, is_folder in _HISTORY.items()
    }
    home = findings.home.rpartition("/")[2]
    is_above = any(re.match(r"\.\.|/|~", word.shown) for word in words)
    homes = {f"{start.rstrip('/')}/{home}": True for start in start_texts(texts) if is_above}
    fits = acted_on(texts, files) or acted_on(texts, homes)
    return "it would delete the history of the project, or a home" if fits else ""


def names_parent(text: str, findings: WalkState, depth: int = 0) -> bool:
    """Return whether a text may name the process that runs the shell line, or this process's id."""
    if "ppid" in text.lower() or _lists_own(text):
        return True
    names = re.findall(r"\$\{?(\w+)", text) if depth < _DEEPEST else []
    given = [value for name in names for value in findings.values.given(name) or ()]
    return any(names_parent(_text_of(value), findings, depth + 1) for value in given)


def _text_of(value: Value) -> str:
    """Return a value's source text; for a command's output, the text of the command."""
    if isinstance(value, CommandFeed):
        return " | ".join(map(_words, value.parts)) or _text_of(value.word)
    return "" if value is None else value.shown


def _words(statement: Statement) -> str:
    if isinstance(statement, StatementBlock):
        return "; ".join(map(_words, statement.parts))
    return " ".join(word.raw for word in statement.words)


def _killing(words: Sequence[Word], findings: WalkState) -> str:
    """Return why a `kill` may end processes that the shell line did not start, or ""."""
    rest = _texts(words)
    if rest[:1] and rest[0] in ("-l", "-L", "-0"):
        return ""
    if rest[:1] and rest[0] in _SIGNAL_OPTIONS:
        rest = rest[2:]
    elif rest[:1] and _SIGNAL.fullmatch(rest[0]):
        rest = rest[1:]
    named = [text for text in rest if text not in ("--", findings.placeholder)]
    is_own = any(_NOT_ONES_OWN.fullmatch(text) or names_parent(text, findings) for text in named)
    fed = "" if named else _text_of(findings.fed)
    return _ENDS if is_own or _lists_own(fed) else ""


def _lists_own(text: str) -> bool:
    """Return whether the commands in a text may print the id of Pegboard's process."""
    found = _LISTS_PROCESSES.search(text)
    if found is None or len(text) > _LONGEST_SOURCE:
        return found is not None
    if "ppid=" in text.replace(" ", ""):
        return True
    if not found[0].strip(" ;&|(`").startswith(("ps", "top")):
        words = [word.strip("'\"") for word in found["rest"].split()]
        is_whole = any(re.match(r"-\w*f", word) for word in words)
        named = [word for word in words if not word.startswith("-")]
        return any(_fits(name, line) for name in named for line in _lines(whole=is_whole))
    sought = [each for each in _SOUGHT.finditer(text) if "-v" not in (each["options"] or "")]
    if not sought and _ONE_PROCESS.search(found["rest"]):
        return False
    return all(_fits(each["word"] or each["pattern"], _OWN_LINE) for each in sought)


def _lines(*, whole: bool) -> tuple[str, ...]:
    """Return the names of Pegboard's process; with `whole`, the command lines of the process."""
    return (_OWN, _OWN_LINE) if whole else _OWN_NAMES


def _pkilling(words: Sequence[Word], findings: WalkState) -> str:
    texts = _texts(words)
    is_whole = any(re.fullmatch(r"-\w*f\w*|--full", text) for text in texts)
    is_other = not {"-v", "--inverse"}.isdisjoint(texts)
    return _ENDS if is_other else _killing_by_name(words, findings, is_whole=is_whole)


def _killing_by_name(words: Sequence[Word], _: WalkState, *, is_whole: bool = False) -> str:
    """Return why killing by name may end Pegboard's process, or "" if it cannot."""
    texts = _texts(words)
    named = [
        text
        for before, text in pairwise(["", *texts])
        if not text.startswith("-") and not _SELECTS.fullmatch(before)
    ]
    is_users = not named and any(map(_BY_USER.fullmatch, texts))
    fits = any(_fits(name, line) for name in named for line in _lines(whole=is_whole))
    return _ENDS if fits or is_users else ""


def _fits(pattern: str, line: str) -> bool:
    """Return whether a `pkill` pattern matches a process's name or command line.

    For a pattern that cannot be evaluated, return whether one of its words is in the line.
    """
    found = finds(pattern, line)
    if found is not None:
        return found
    words = re.findall(r"\w+", pattern)
    return not words or any(word in line for word in words)


_RULES: Mapping[str, Callable[[Sequence[Word], WalkState], str]] = {
    "find": _finding,
    "git": _working,
    "kill": _killing,
    "pkill": _pkilling,
    "killall": _killing_by_name,
}


def tells_of_process(text: str) -> bool:
    """Return whether a text may name the file with the environment of a process.

    A wildcard or a variable in the name counts too; quotes and backslashes are ignored.
    """
    if "proc" not in (plain := _QUOTES.sub("", text)):
        return False
    last = (found[1] for found in _IN_PROC.finditer(plain))
    is_open = any("$" in name or shell_fits(name, "environ") for name in last)
    return is_open or any(map(_ENVIRON.search, (text, plain)))
