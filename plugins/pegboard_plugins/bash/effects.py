"""What a command reads, writes and destroys, by its operands and the values of its options."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pegboard_plugins.bash.destroying import DELETERS, destroy
from pegboard_plugins.bash.findings import Findings
from pegboard_plugins.bash.gits import git_config
from pegboard_plugins.bash.listings import names_secret
from pegboard_plugins.bash.options import git_words
from pegboard_plugins.bash.unread import tells_of_process
from pegboard_plugins.bash.values import ANYTHING
from pegboard_plugins.bash.words import Operand

_WORDS_ONLY = frozenset(
    {
        *("echo", "printf", "true", "false", ":", "exit", "return", "kill", "sleep", "seq"),
        *("break", "continue", "shift", "wait", "jobs", "times", "umask", "ulimit", "set", "expr"),
        *("export", "declare", "local", "readonly", "typeset", "unset", "read", "let", "shopt"),
        *("which", "type", "whoami", "id", "uname", "basename", "dirname", "pgrep", "ps"),
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
_MOVERS = frozenset(
    {
        *("cat", "head", "tail", "less", "more", "grep", "egrep", "fgrep", "rg", "ag", "sed"),
        *("awk", "gawk", "mawk", "jq", "yq", "cut", "sort", "uniq", "nl", "tac", "rev", "column"),
        *("xxd", "strings", "hexdump", "base64", "base32", "bat", "batcat", "od", "diff", "cmp"),
        *("comm", "paste", "join", "fold", "fmt", "tee", "truncate", "shred", "cp", "mv", "ln"),
        *("install", "rsync", "scp", "tar", "zip", "gzip", "gunzip", "zcat", "xz", "openssl"),
        *("gpg", "dd", "view", "vim", "vi", "nano", "split", "csplit", "expand", "pr", "sponge"),
        "iconv",
    }
)
"""They show, send, copy or overwrite what is in files."""
_VALUE = re.compile(r"(--?[\w-]+=|\w+=@?|-[A-Za-z]|@)[$`]")
_GIVEN: Mapping[str, tuple[frozenset[str], int]] = {
    "jq": (frozenset({"--arg", "--argjson"}), 2),
    **dict.fromkeys(
        ("sed", "grep", "egrep", "fgrep", "rg"),
        (frozenset({"-e", "--expression", "--regexp"}), 1),
    ),
    **dict.fromkeys(("awk", "gawk", "mawk"), (frozenset({"-v", "--assign"}), 1)),
}
"""Options with which programs are given variables or patterns, and of how many words."""
_GLUED = re.compile(r"-(?:[KT]|[dF](?=@|\w+=@))(.+)", re.DOTALL)
"""Options of curl with the name of a file behind them."""
_VERSION = re.compile(r"[^$`]*:[$`]")
"""Behind a colon git takes the name of a file."""
_MOUNTED = re.compile(r"([/~.$][^:]*):/.*", re.DOTALL)
"""What `docker -v` takes from here, and where it puts it."""
_SENDS = re.compile(r"-[dFKT]|--(data|form|upload|config)")
_GIT_SHOWS = frozenset({"show", "diff", "grep", "cat-file", "blame", "add"})
_LAST_WRITTEN = frozenset({"cp", "install", "rsync", "scp"})
_EXPRESSION_OPTION = re.compile(r"-\w*[ef]|--(reg|file|expr).*")
_LONGEST_CLUSTER = 12
_BEHIND = re.compile(r"([=@,:])([^=@,:]+)")
_SEVERAL = re.compile(r"[\s'\"(]")
_FILE = re.compile(r"[\w./~+-]*\.[\w./+-]+|[\w./~+-]*id_\w+|/proc/[\w/]+")
_REMOVERS = DELETERS | {"find", "mv", "rsync", "chmod", "rmdir", "rimraf", "git"}
_PS_SHOWS = re.compile(r"[A-Za-z]*[eE][A-Za-z]*|-[A-Za-z]*E[A-Za-z]*")
_PS_VALUED = re.compile(r"-\w*[CoOkpuUgGtsqN]|[a-zA-Z]*[oOkUpt]|--\w+")
"""With its letter `e`, without a sign before it, `ps` shows the environments; source: ps(1)."""
_LOCAL_URL = re.compile(r"^file://[^/]*/", re.IGNORECASE)
_MESSAGES = frozenset({"-m", "--message", "-b", "--body", "-t", "--title", "-n", "--notes"})
_MESSENGERS = frozenset({"git", "gh", "hg", "glab"})
_FOLDER_OPTIONS = frozenset({"-C", "--directory", "--git-dir", "--work-tree"})
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


def apply(base: str, words: Sequence[Operand], findings: Findings) -> None:
    """Add what the command would do with files; `words` are its arguments."""
    if base == "ps" and _shows_variables([word.text for word in words]):
        findings.tell_of_process()
    if base in _WORDS_ONLY:
        return
    words = _known(words, findings, unset=base in _REMOVERS)
    operands = _candidates(base, words)
    texts = list(_texts(operands, findings))
    is_seen = base not in _WRITERS and any(map(names_secret, texts))
    if not is_seen and tells_of_process(" ".join(texts)):
        findings.tell_of_process()
    _doubt(base, words, operands, findings)
    writes = _is_writer(base, operands)
    for word in operands:
        _touch(word, findings, write=writes)
    _hand_over(base, operands, findings)
    _write(base, words, operands, findings)
    _written_by_option(base, operands, findings)
    destroy(base, words, operands, findings)


def _shows_variables(texts: Sequence[str]) -> bool:
    """Whether the words of a `ps` make it show what processes were given."""
    return any(
        _PS_SHOWS.fullmatch(text) and not _PS_VALUED.fullmatch(before)
        for before, text in pairwise(["", *texts])
    )


def _texts(words: Sequence[Operand], findings: Findings) -> Iterator[str]:
    """What the words may come to."""
    for word in words:
        yield from findings.values.words([word.word]) if word.word and word.dynamic else [word.text]


def _doubt(
    base: str, words: Sequence[Operand], candidates: Sequence[Operand], findings: Findings
) -> None:
    """Doubt a command that moves the content of files of which nobody knows the names."""
    if moves_content(base, [word.text for word in words]):
        for word in candidates:
            if (word.open or _takes_file(base, word)) and findings.is_unknown(word):
                findings.doubt("dynamic-args", word)


def _write(
    base: str, words: Sequence[Operand], operands: Sequence[Operand], findings: Findings
) -> None:
    """What programs write that have a way of their own to name it."""
    texts = [word.text for word in words]
    if base == "git" and (file := git_config(texts)):
        findings.touch(Operand(file), write=True)
    if base in _LAST_WRITTEN and operands:
        _touch(operands[-1], findings, write=True)
    for word in operands if base == "dd" else ():
        if word.text.startswith(("of=", "if=")):
            findings.touch(Operand(word.text[len("of=") :]), write=word.text.startswith("of="))


def touches(base: str) -> bool:
    """Whether it is known what a command of this name does with files."""
    return base in _READERS | _WRITERS | _PLACERS | _MOVERS | DELETERS


def moves_content(base: str, texts: Sequence[str]) -> bool:
    """Whether the command shows, sends, copies or overwrites what is in the files it is given."""
    if base == "curl":
        return any(map(_SENDS.match, texts))
    if base == "git":
        return not _GIT_SHOWS.isdisjoint(git_words(texts)[:1])
    return base in _MOVERS


def _takes_file(base: str, word: Operand) -> bool:
    """Whether the value in a word is dynamic from its start, and so may be any file's name."""
    value = _VERSION if base == "git" else _VALUE
    return word.dynamic and value.match(word.text) is not None


def _candidates(base: str, words: Sequence[Operand]) -> list[Operand]:
    """The words that may name files: not a pattern, not a message."""
    rest = _without_values(base, words)
    if base in _PATTERN_FIRST and not any(_EXPRESSION_OPTION.match(word.text) for word in words):
        counts = r"-|\d+$" if base.endswith("grep") else r"-"  # as in `-A 5`
        first = next((word for word in rest if not re.match(counts, word.text)), None)
        rest = [word for word in rest if word is not first]
    if base == "curl":
        glued = [(word, _GLUED.fullmatch(word.text)) for word in rest]
        rest += [replace(word, text=found[1]) for word, found in glued if found]
    if base in ("docker", "podman"):
        pairs = pairwise([Operand(""), *rest])
        rest = [after for before, after in pairs if before.text not in ("-w", "--workdir")]
        found = [(word, _MOUNTED.fullmatch(word.text)) for word in rest]
        rest = [Operand(mount[1], bare=word.bare) if mount else word for word, mount in found]
    if base in _MESSENGERS:
        rest = [
            word
            for at, word in enumerate(rest)
            if not (at and rest[at - 1].text in _MESSAGES and not word.splits)
        ]
    return rest


def _without_values(base: str, words: Sequence[Operand]) -> list[Operand]:
    """The words without the variables that a program is given, with their values."""
    count = _GIVEN.get(base)
    if count is None:
        return list(words)
    options, values = count
    rest, skipped = [], 0
    for word in words:
        if skipped:
            skipped -= 1
        elif word.text in options:
            skipped = values
        else:
            rest.append(word)
    return rest


def _known(words: Sequence[Operand], findings: Findings, *, unset: bool) -> list[Operand]:
    """The words with the values of variables, as far as the line gives them."""
    found: list[Operand] = []
    for word in words:
        values = findings.known(word, unset=unset)
        found += [word] if values is None else values
    return found


def _touch(word: Operand, findings: Findings, *, write: bool) -> None:
    """What a word names, in whatever way; of one that is not known what it may be."""
    if not word.dynamic:
        for text in _named(word.text):
            findings.touch(Operand(text, bare=word.bare or text != word.text), write=write)
        return
    texts = findings.values.texts(word.word) if word.word is not None else ()
    pieces = (each.split() if word.splits else [each] for each in texts)
    for text in (text for piece in pieces for text in piece):
        folder, known, _ = text.partition(ANYTHING)
        plain = text.replace(ANYTHING, "")
        if names_secret(plain):
            findings.touch(Operand(plain, bare=word.bare), write=write)
        elif folder and (not known or "/" in folder):
            _touch(Operand(folder, bare=word.bare), findings, write=write)


def tell(word: Operand, findings: Findings) -> None:
    """A text that a command is given: what it names of secrets is read."""
    for text in findings.values.texts(word.word) if word.word is not None else (word.text,):
        for name in _secrets(text):
            findings.touch(Operand(name))


def _named(text: str) -> Iterator[str]:
    """The paths in a word: itself, what is glued to an option, what stands behind a sign."""
    local = _LOCAL_URL.sub("/", text.removeprefix("@"))
    if not text.startswith("-"):
        if local and "://" not in local and "\n" not in local:
            yield local
    elif not text.startswith("--"):
        for at in range(len("-x"), min(len(text), _LONGEST_CLUSTER)):
            if text[at] in "/~" or text.startswith("../", at):
                yield text[at:]
                break
            if names_secret(text[at:]):
                yield text[at:]
    if "://" not in text:
        for sign, part in _BEHIND.findall(text):
            if (
                names_secret(part)
                or (sign != ":" and part.startswith(("/", "~", "../")))
                or (sign == "=" and text.startswith("--"))
            ):
                yield part
    yield from _secrets(text)


def _secrets(text: str) -> Iterator[str]:
    """The files of secrets that are named in a text of several words, such as code."""
    if _SEVERAL.search(text):
        yield from (name for name in _FILE.findall(text) if names_secret(name))


def _hand_over(base: str, operands: Sequence[Operand], findings: Findings) -> None:
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
            findings.made |= dict.fromkeys(
                findings.places(Operand(name))
            )  # as `git clone` names it
    if base in _LINKERS:
        sources = operands[:-1]
        findings.linked |= dict.fromkeys(p for word in sources for p in findings.places(word))


def _with_value(word: Operand) -> tuple[Operand, ...]:
    """The word, and the value that stands in it behind an option's name."""
    option, equals, value = word.text.partition("=")
    if option == "--git-dir":
        return ()
    if equals:
        return (word, Operand(value))
    glued = re.fullmatch(r"-[A-Za-z]([^-].*)", word.text, re.DOTALL)
    return (word,) if glued is None else (word, Operand(glued[1], bare=False))


def _second(base: str, operands: Sequence[Operand]) -> list[Operand]:
    """The second operand of a program that writes there."""
    valued = _SECOND_WRITTEN.get(base)
    if valued is None:
        return []
    named = [
        word
        for before, word in pairwise([Operand(""), *operands])
        if not re.match(r"-.", word.text) and not re.fullmatch(rf"-\w*[{valued}]", before.text)
    ]
    return named[1:2]


def _is_called(option: str, names: Sequence[str]) -> bool:
    """Whether the option is one of these, or the beginning of a long one."""
    is_short_for = option.startswith("--") and len(option) > len("--")
    return any(name == option or (is_short_for and name.startswith(option)) for name in names)


def _place(operands: Sequence[Operand], findings: Findings) -> None:
    """Where things come to be: at the last operand, or in it under their own names."""
    named = [word for word in operands if not word.text.startswith("-")]
    target = next(
        (after for word, after in pairwise(operands) if _is_called(word.text, _TARGET_OPTIONS)),
        named[-1] if named else None,
    )
    for word in operands:
        option, equals, value = word.text.partition("=")
        if equals and _is_called(option, _TARGET_OPTIONS):
            target = Operand(value, bare=word.bare)
    if target is None or target.dynamic:
        return
    for folder in findings.places(target):
        findings.lands[folder] = None
        for word in named:
            name = word.text.rstrip("/").rpartition("/")[2]
            findings.lands[f"{folder.rstrip('/')}/{name}"] = None


def _is_writer(base: str, operands: Sequence[Operand]) -> bool:
    if base == "sed":
        return any(re.match(r"-[a-zA-Z]*i|--i", word.text) for word in operands)
    return base in _WRITERS


def _written_by_option(base: str, operands: Sequence[Operand], findings: Findings) -> None:
    for word in _second(base, operands):
        _touch(word, findings, write=True)
    subcommand = next((word.text for word in operands if not word.text.startswith("-")), "")
    names = _WRITE_OPTIONS.get(f"{base} {subcommand}") or _WRITE_OPTIONS.get(base, ())
    letters = "".join(name[1] for name in names if len(name) == len("-o"))
    for before, word in pairwise([Operand(""), *operands]):
        option, equals, value = word.text.partition("=")
        if equals and _is_called(option, names):
            findings.touch(Operand(value), write=True)
        elif glued := re.fullmatch(rf"-[{letters}](.+)", word.text) if letters else None:
            findings.touch(Operand(glued[1], bare=False), write=True)
        bundled = letters and re.fullmatch(rf"-[A-Za-z]*[{letters}]", before.text)
        if (bundled or _is_called(before.text, names)) and word.text != "-":
            findings.touch(word, write=True)
