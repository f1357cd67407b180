"""What a command reads, writes and destroys, by its operands and the values of its options."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pegboard_plugins.bash.findings import Findings
from pegboard_plugins.bash.flags import git_config, sed_files
from pegboard_plugins.bash.words import Word

_WORDS_ONLY = frozenset(
    {
        *("echo", "printf", "true", "false", ":", "exit", "return", "kill", "sleep", "seq"),
        *("break", "continue", "shift", "wait", "jobs", "times", "umask", "ulimit", "set", "expr"),
        *("export", "declare", "local", "readonly", "typeset", "unset", "read", "let", "shopt"),
        *("which", "type", "whoami", "id", "date", "uname", "basename", "dirname", "pgrep", "ps"),
        *("alias", "getopts", "mapfile", "readarray", "eval", "trap", "killall", "pkill", "tr"),
        *("test", "["),
    }
)
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "jq", "ag"})
_WRITERS = frozenset(
    {
        *("tee", "touch", "mkdir", "rm", "rmdir", "unlink", "truncate", "shred", "mv", "ln"),
        *("chmod", "chown", "chgrp", "chattr", "setfacl", "mkfifo", "mknod", "wipe", "srm"),
    }
)
_PLACERS = frozenset({"mv", "cp", "ln", "install", "rsync", "scp"})
_GIT_PLACERS = frozenset({"mv", "clone", "worktree", "submodule"})
_LINKERS = frozenset({"ln", "link"})
_TARGET_OPTIONS = ("-t", "--target-directory")
_READERS = frozenset(
    {
        *("cat", "head", "tail", "less", "more", "ls", "tree", "du", "df", "stat", "file", "wc"),
        *("cd", "pushd", "grep", "egrep", "fgrep", "rg", "ag", "find", "fd", "diff", "cmp", "comm"),
        *("sed", "awk", "gawk", "jq", "cut", "sort", "uniq", "nl", "tac", "rev", "column", "xxd"),
        *("md5sum", "sha1sum", "sha256sum", "cksum", "readlink", "realpath", "strings", "hexdump"),
        *("[[", "base64", "bat", "od", "git"),
    }
)
"""They write nothing but what an option or a redirection names; git's own ways are not files'."""
_LAST_WRITTEN = frozenset({"cp", "install", "rsync", "scp"})
_DELETERS = frozenset({"rm", "shred", "wipe", "srm", "unlink"})
_BINS = frozenset({"rimraf", "trash", "trash-put", "del-cli"})
"""They delete whole folders without being told to."""
_RECURSIVE = re.compile(r"-[a-zA-Z]*[rR][a-zA-Z]*|--r(e[a-z]*)?|--no-preserve-root")
_DELETING = re.compile(rf"(?:^|[\s;&|(/])(?:{'|'.join(sorted(_DELETERS))})\s")
_EXPANSION = re.compile(r"\$\(.*\)|`.*`|\$\{.*\}|\$(?:\w+|[-$@*#?!])", re.DOTALL)
_ZIP_MOVES = re.compile(r"-[a-zA-Z]*m[a-zA-Z]*|--move")
_EXPRESSION_OPTION = re.compile(r"-\w*[ef]|--(reg|file|expr).*")
_SHORT_WITH_PATH = re.compile(r"-[A-Za-z]((?:/|~|\.\./).*)")
_LOCAL_URL = re.compile(r"^file://[^/]*/", re.IGNORECASE)
_MESSAGES = frozenset({"-m", "--message", "-b", "--body", "-t", "--title", "-n", "--notes"})
_MESSENGERS = frozenset({"git", "gh", "hg", "glab"})
_FOLDER_OPTIONS = frozenset({"-C", "--directory", "--git-dir", "--work-tree"})
_FIND_FILTER = re.compile(
    r"-(i?(l|whole)?name|i?path|i?regex|[acm]time|[acm]min|newer.*|size|empty|inum|samefile)"
)
_FITS_ALL = re.compile(r"[*?./^$+]+|[+-]?0\w?")
_WRITE_OPTIONS = {
    "sort": ("-o", "--output"),
    "find": ("-fprint", "-fprint0", "-fprintf", "-fls"),
    "curl": ("-o", "--output", "-c", "--cookie-jar", "-D", "--dump-header", "--output-dir"),
    "wget": ("-O", "--output-document", "-o", "-P", "--directory-prefix"),
    "git": ("--output",),
    "git archive": ("-o", "--output"),
    "git format-patch": ("-o", "--output-directory"),
    "tree": ("-o",),
    "less": ("-o", "-O", "--log-file", "--LOG-FILE"),
}
_SECOND_WRITTEN = {"uniq": "fsw", "xxd": "clgosRn"}
"""The second operand of each is written; the letters are options with a value."""


def apply(base: str, words: Sequence[Word], findings: Findings) -> None:
    """Add what the command would do with files; `words` are its arguments."""
    if base in _WORDS_ONLY:
        return
    operands = _known(_candidates(base, words), findings)
    writes = _is_writer(base, operands)
    for word in operands:
        _touch(word, findings, write=writes)
    _hand_over(base, operands, findings)
    texts = [word.text for word in operands]
    if base == "sed":
        for path in sed_files([word.text for word in words]):
            findings.touch(Word(path), write=True)
    if base == "git" and (file := git_config([word.text for word in words])):
        findings.touch(Word(file), write=True)
    if base in _LAST_WRITTEN and operands:
        _touch(operands[-1], findings, write=True)
    if base == "dd":
        for text in texts:
            if text.startswith(("of=", "if=")):
                findings.touch(Word(text[len("of=") :]), write=text.startswith("of="))
    _written_by_option(base, operands, findings)
    _destroy(base, words, operands, findings)


def _candidates(base: str, words: Sequence[Word]) -> list[Word]:
    """The words that may name files: not a pattern, not a message."""
    rest = list(words)
    if base in _PATTERN_FIRST and not any(_EXPRESSION_OPTION.match(word.text) for word in rest):
        first = next((word for word in rest if not word.text.startswith("-")), None)
        rest = [word for word in rest if word is not first]
    if base in _MESSENGERS:
        rest = [
            word
            for at, word in enumerate(rest)
            if not (at and rest[at - 1].text in _MESSAGES and not word.splits)
        ]
    return rest


def _known(words: Sequence[Word], findings: Findings) -> list[Word]:
    """The words with the values of variables; what stays unknown is doubted."""
    known: list[Word] = []
    for word in words:
        values = findings.known(word)
        if values is not None:
            known += values
            continue
        if word.open:
            findings.doubt("dynamic-args")
        known.append(word)
    return known


def _touch(word: Word, findings: Findings, *, write: bool) -> None:
    text = word.text
    if text.startswith("-"):
        option, equals, value = text.partition("=")
        glued = _SHORT_WITH_PATH.fullmatch(text)
        if glued is not None:
            text = glued[1]
        elif equals and option.startswith("--"):
            text = value
        else:
            return
    text = _LOCAL_URL.sub("/", text.removeprefix("@"))
    if text and "://" not in text and "\n" not in text and not (word.dynamic and word.leads):
        fixed = Word(re.split(r"[$`]", text)[0] if word.dynamic else text, bare=word.bare)
        findings.touch(fixed, write=write)


def _hand_over(base: str, operands: Sequence[Word], findings: Findings) -> None:
    """What a program may write, make or give another name, that nothing else says of it."""
    if base == "mkdir":
        findings.made |= dict.fromkeys(path for word in operands for path in findings.places(word))
    if base not in _READERS or base == "git":
        named = [each for word in operands for each in _with_value(word)]
        paths = [path for word in named for path in findings.places(word)]
        inside = [path for path in paths if "/.git/" in f"{path}/".lower()]
        findings.handed |= dict.fromkeys(inside if base == "git" else paths)
    if base in _PLACERS:
        _place(operands, findings)
    if base == "git":
        named = [word for word in operands if not word.text.startswith("-")]
        if any(word.text in _GIT_PLACERS for word in named[:2]):
            _place(named, findings)
            name = re.split(r"[/:]", named[-1].text.rstrip("/"))[-1].removesuffix(".git")
            findings.made |= dict.fromkeys(findings.places(Word(name)))  # as `git clone` names it
    if base in _LINKERS:
        sources = operands[:-1]
        findings.linked |= dict.fromkeys(p for word in sources for p in findings.places(word))


def _with_value(word: Word) -> tuple[Word, ...]:
    """The word, and the value that stands in it behind an option's name."""
    option, equals, value = word.text.partition("=")
    if option == "--git-dir":
        return ()
    if equals:
        return (word, Word(value))
    glued = re.fullmatch(r"-[A-Za-z]([^-].*)", word.text, re.DOTALL)
    return (word,) if glued is None else (word, Word(glued[1], bare=False))


def _second(base: str, operands: Sequence[Word]) -> list[Word]:
    """The second operand of a program that writes there."""
    valued = _SECOND_WRITTEN.get(base)
    if valued is None:
        return []
    named = [
        word
        for before, word in pairwise([Word(""), *operands])
        if not re.match(r"-.", word.text) and not re.fullmatch(rf"-\w*[{valued}]", before.text)
    ]
    return named[1:2]


def _is_called(option: str, names: Sequence[str]) -> bool:
    """Whether the option is one of these, or the beginning of a long one."""
    is_short_for = option.startswith("--") and len(option) > len("--")
    return any(name == option or (is_short_for and name.startswith(option)) for name in names)


def _place(operands: Sequence[Word], findings: Findings) -> None:
    """Where things come to be: at the last operand, or in it under their own names."""
    named = [word for word in operands if not word.text.startswith("-")]
    target = next(
        (after for word, after in pairwise(operands) if _is_called(word.text, _TARGET_OPTIONS)),
        named[-1] if named else None,
    )
    for word in operands:
        option, equals, value = word.text.partition("=")
        if equals and _is_called(option, _TARGET_OPTIONS):
            target = Word(value, bare=word.bare)
    if target is None or target.dynamic:
        return
    for folder in findings.places(target):
        findings.lands[folder] = None
        for word in named:
            name = word.text.rstrip("/").rpartition("/")[2]
            findings.lands[f"{folder.rstrip('/')}/{name}"] = None


def _is_writer(base: str, operands: Sequence[Word]) -> bool:
    if base == "sed":
        return any(re.match(r"-[a-zA-Z]*i|--i", word.text) for word in operands)
    return base in _WRITERS


def _written_by_option(base: str, operands: Sequence[Word], findings: Findings) -> None:
    for word in _second(base, operands):
        _touch(word, findings, write=True)
    subcommand = next((word.text for word in operands if not word.text.startswith("-")), "")
    names = _WRITE_OPTIONS.get(f"{base} {subcommand}") or _WRITE_OPTIONS.get(base, ())
    letters = "".join(name[1] for name in names if len(name) == len("-o"))
    for before, word in pairwise([Word(""), *operands]):
        option, equals, value = word.text.partition("=")
        if equals and _is_called(option, names):
            findings.touch(Word(value), write=True)
        elif glued := re.fullmatch(rf"-[{letters}](.+)", word.text) if letters else None:
            findings.touch(Word(glued[1], bare=False), write=True)
        bundled = letters and re.fullmatch(rf"-[A-Za-z]*[{letters}]", before.text)
        if (bundled or _is_called(before.text, names)) and word.text != "-":
            findings.touch(word, write=True)


def _destroy(
    base: str, words: Sequence[Word], operands: Sequence[Word], findings: Findings
) -> None:
    texts = [word.text for word in words]
    named = [word for word in operands if not word.text.startswith("-")]
    if base in _BINS or (base in _DELETERS and any(map(_RECURSIVE.fullmatch, texts))):
        targets = named
    elif base == "mv":
        targets = [word for word in named[:-1] if re.match(r"[/~]|[^*?\[]*$", word.text)]
    elif base == "find":
        targets = _found(texts, named)
    elif base == "rsync" and any(text.startswith("--del") for text in texts):
        targets = named[-1:]
    elif base == "dd":
        targets = [Word(text[len("of=") :]) for text in texts if text.startswith("of=")]
    elif base.startswith("mkfs"):
        targets = named[-1:]
    else:
        targets = _packed(base, texts, operands)
    for word in targets:
        emptied = _emptied(word, findings)
        if not emptied.text or word.open:
            findings.destroys[""] = None
        else:
            findings.destroy(word)
            findings.destroy(word if base == "mv" else emptied)  # nothing moves the folder it is in


def _emptied(word: Word, findings: Findings) -> Word:
    """What is left of a word when nothing is put for what only the shell, or a caller, knows."""
    text = _EXPANSION.sub("", word.text) if word.dynamic else word.text
    if findings.placeholder:
        text = text.replace(findings.placeholder, "")
    return Word(text, bare=word.bare)


def _packed(base: str, texts: Sequence[str], operands: Sequence[Word]) -> list[Word]:
    """What is gone once it is in an archive, from each folder that the archiver goes to."""
    if base in ("tar", "gtar", "bsdtar"):
        is_gone = any(text.startswith("--remove-f") for text in texts)
    else:
        is_gone = base == "zip" and any(map(_ZIP_MOVES.fullmatch, texts))
    if not is_gone:
        return []
    inside, folder = [], ""
    for before, word in pairwise([Word(""), *operands]):
        text = word.text if word.text.startswith(("/", "~")) else f"{folder}{word.text}"
        if before.text in ("-C", "--directory"):
            folder = f"{text}/"
        elif not word.text.startswith("-"):
            inside.append(replace(word, text=text))
    return inside


def _found(texts: Sequence[str], named: Sequence[Word]) -> list[Word]:
    """Where a find starts that deletes whatever it comes by."""
    start = next((at for at, text in enumerate(texts) if text.startswith(("-", "(", "!"))), 0)
    deletes = "-delete" in texts or (
        any(text.startswith(("-exec", "-ok")) for text in texts)
        and any(text.rpartition("/")[2] in _DELETERS or _DELETING.search(text) for text in texts)
    )
    if not deletes or _is_narrow(texts):
        return []
    return list(named[: max(start, 0)]) or [Word(".")]


def _is_narrow(texts: Sequence[str]) -> bool:
    """Whether each alternative of a find wants a trait that not about everything has."""
    if any(
        sign in ("!", "-not") and after in ("(", "!", "-not") for sign, after in pairwise(texts)
    ):
        return False
    alternatives: list[bool] = [False]
    for before, text, value in zip(["", *texts], texts, [*texts[1:], "*"], strict=False):
        if text in ("-o", "-or", ","):
            alternatives.append(False)
        elif _FIND_FILTER.fullmatch(text) and before not in ("!", "-not"):
            alternatives[-1] |= _FITS_ALL.fullmatch(value) is None
    return all(alternatives)
