"""Where a value comes from that only the shell will know: a number, a name of a file, or any.

A loop over `git ls-files` gives names of files that are there, `$!` a number; neither can turn a
command into another one. What is decoded, computed or read from a file may be anything.
"""

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard import secret_path
from pegboard_plugins.bash.flags import git_words
from pegboard_plugins.bash.searches import finds
from pegboard_plugins.bash.words import Word, read_word

if TYPE_CHECKING:
    from tree_sitter import Node


class Origin(IntEnum):
    """What is sure about a value, the later the less."""

    KNOWN = 0
    NUMBER = 1
    LISTING = 2
    UNKNOWN = 3


Values = dict[str, frozenset[str] | Origin]
"""What a variable may hold, or what is sure about it where only the shell will know."""
_COMPUTED = {"arithmetic_expansion": Origin.NUMBER, "brace_expression": Origin.LISTING}
ARGUMENTS = "@"
"""The name under which values keep what is sure about `$1`, `$@` and the like."""
_LONGEST = 500
"""Bytes of a substitution that is looked into: each is read again for the one it stands in."""
_NUMBERS = frozenset({"wc", "nproc", "pgrep", "pidof", "seq", "expr", "id", "lsof", "fuser", "du"})
_LISTERS = frozenset(
    {
        *("ls", "find", "fd", "fdfind", "pwd", "mktemp", "dirname", "basename", "realpath"),
        *("readlink", "which", "date", "uname", "whoami", "hostname", "arch", "locale", "stat"),
        *("pkg-config", "pg_config", "llvm-config", "python3-config", "sw_vers", "lsb_release"),
    }
)
_LISTING_WORDS: Mapping[str, frozenset[str]] = {
    "brew": frozenset({"--prefix", "--cellar", "--repository"}),
    "cargo": frozenset({"locate-project", "pkgid"}),
    "command": frozenset({"-v"}),
    "conda": frozenset({"info"}),
    "docker": frozenset({"ps", "images", "inspect"}),
    "git": frozenset(
        {
            *("rev-parse", "ls-files", "status", "merge-base", "branch", "symbolic-ref", "tag"),
            *("describe", "ls-tree", "rev-list", "remote", "diff-tree", "worktree"),
        }
    ),
    "go": frozenset({"env", "list"}),
    "kubectl": frozenset({"get"}),
    "npm": frozenset({"root", "prefix", "bin"}),
    "pnpm": frozenset({"root", "bin"}),
    "pyenv": frozenset({"root", "prefix", "which"}),
    "rustc": frozenset({"--print", "--version", "-vV"}),
    "type": frozenset({"-p", "-P"}),
    "xcrun": frozenset({"--show-sdk-path", "--find"}),
    "yarn": frozenset({"bin"}),
}
"""Programs that list things, with these words first."""
_KEEPERS = frozenset({"head", "tail", "sort", "uniq", "tac", "tee"})
_SEARCHES = frozenset({"grep", "egrep", "fgrep", "rg", "ag"})
_SILENT = frozenset({"cd", "true", "false", ":", "test", "[", "set", "sleep", "exit"})
_NAMES_ONLY = re.compile(r"-[a-zA-Z]*[lLc][a-zA-Z]*|--(files\S*|name-only|count)")
_PIECES = re.compile(r"-[a-zA-Z]*o[a-zA-Z]*|--only-matching")
_INVERSE = re.compile(r"-[a-zA-Z]*v[a-zA-Z]*|--invert-match")
_SAYS = {"ls": re.compile(r"-[a-zA-Z0-9]*[aAf]|--a"), "seq": re.compile(r"-[a-z]*f|--f")}
"""With these options `ls` names what is hidden, and `seq` any text."""
_COLUMN = re.compile(r"(/[\w^$. -]*/|NR[=<>!]+\d+)?\s*\{\s*print \$(\d+|NF)\s*;?\s*\}")
_PICKS: Mapping[str, re.Pattern[str]] = {
    "cut": re.compile(r"-[dfs].*|--(delimiter|fields)=.*|\d+(,\d+)*-?|."),
    "tr": re.compile(r"-[ds]|(\\n|\\0|\\r|\s|,)+|\[:(space|blank):\]"),
    "sed": re.compile(r"-n|\d+(,(\d+|\$))?[pdq]|s([/|#,])\^(\\?\.)?\\?/?\3\3"),
}
"""The arguments of each with which it leaves out lines or columns, and blanks."""
_RAW = re.compile(r"-[a-zA-Z]*[rj]|--(raw|join)-output")
_HASHES = re.compile(r"--(format|pretty)=(format:)?%[hH]|--name-only|--name-status")
_NUMERIC = frozenset({"?", "#", "$", "!", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID"})
_NUMERIC |= {"BASHPID", "COLUMNS", "LINES", "EPOCHSECONDS"}
_FOLDERS = re.compile(
    r"0|BASH_SOURCE|\w*PATH|PWD|OLDPWD|TMPDIR|TEMP|TMP|USER|LOGNAME|HOSTNAME|VIRTUAL_ENV|CONDA_PREFIX"
    r"|NVM_DIR|PYENV_ROOT|GOPATH|GOROOT|JAVA_HOME|ANDROID_HOME|CARGO_HOME|RUSTUP_HOME|GITHUB_\w+"
    r"|RUNNER_\w+|CI_\w+|XDG_\w+_HOME|XDG_RUNTIME_DIR"
)
_EXPANSION = re.compile(r"\$\{(#?)(\w+|[@*?#$!])(\[[@*\w]*\])?(.*)\}", re.DOTALL)
_KEYS = re.compile(r"^\$\{!(?=\w+\[[@*]\]\}$)")
_DEFAULT = re.compile(r":?[-+=]([\w.][\w./-]*)?")
_TRIM = re.compile(r"(##?|%%?|\^\^?|,,?|:-?\d)[^$`]*")
_SECRETS = (
    *(".env", ".env.local", ".env.production", "prod.env", "id_rsa", "id_ed25519", ".netrc"),
    *(".pgpass", ".git-credentials", "credentials.json", "server.key"),
)
_ORDINARY = "src/main.py"
_FITS_ALL = frozenset({"*", "*.*", "?*", "**", ".", ".*"})


def origin_of(word: Word, values: Values) -> Origin:
    """What is sure about a word, whatever its quotes."""
    if not word.dynamic:
        return Origin.KNOWN
    return max((_of_part(part, values) for part in word.parts), default=Origin.UNKNOWN)


def names_secret(text: str) -> bool:
    """Whether a word is, or as a wildcard fits, the name of a file of secrets."""
    name = text.rstrip("/").rpartition("/")[2]
    name = name.rpartition("=")[2]
    if not name or name in _FITS_ALL:
        return False
    if any(sign in name for sign in "*?["):
        return any(fnmatchcase(secret, name) for secret in _SECRETS[:-2])
    return secret_path(Path(text)) or secret_path(Path(name))


def of_statements(nodes: "Sequence[Node]", values: Values) -> Origin:
    """What is sure about the output of these statements, of a pipeline the first parts of it."""
    found = [_of_statement(node, values) for node in nodes if node.is_named]
    return max((origin for origin in found if origin is not None), default=Origin.UNKNOWN)


def of_pipeline(parts: "Sequence[Node]", values: Values) -> Origin:
    """What is sure about the output of a pipeline, or of its first parts."""
    first, *others = (part for part in parts if part.is_named)
    origin = _of_statement(first, values) or Origin.UNKNOWN
    lines = next((at for at, part in enumerate(others) if not _is_of_lines(part)), 0)
    if others and _has_names(_words(first), _words(others[lines]), values):
        origin = Origin.LISTING
    for part in others:
        words = _words(part)
        if words and words[0].text in _NUMBERS:
            origin = Origin.NUMBER
        elif not words or not _keeps(words, values):
            origin = max(origin, _of_command(words, values)) if _feeds(words) else Origin.UNKNOWN
    return origin


def _is_of_lines(part: "Node") -> bool:
    words = _words(part)
    return bool(words) and words[0].text in _KEEPERS


def _has_names(search: Sequence[Word], cut: Sequence[Word], values: Values) -> bool:
    """Whether names of files, or numbers of lines, are cut from what a search has found."""
    if not search or search[0].text not in _SEARCHES:
        return False
    if any(_is_unsure(word, values) for word in search[1:]):
        return False
    flags = "".join(word.text for word in search if re.match(r"-[a-zA-Z]", word.text))
    leads = "n" in flags or (re.search("[rRH]", flags) is not None and "h" not in flags)
    first = [word.text for word in cut] in (["cut", "-d:", "-f1"], ["cut", "-d", ":", "-f", "1"])
    return leads and first


def _of_part(node: "Node", values: Values) -> Origin:
    if node.end_byte - node.start_byte > _LONGEST:
        return Origin.UNKNOWN
    raw = (node.text or b"").decode(errors="surrogateescape")
    match node.type:
        case "simple_expansion":
            return _of_variable(raw[1:], values)
        case "expansion":
            return _of_expansion(raw, values)
        case "command_substitution" | "process_substitution":
            return of_statements(node.named_children, values)
        case kind:
            return _COMPUTED.get(kind, Origin.UNKNOWN)


def _of_variable(name: str, values: Values) -> Origin:
    held = values.get(name)
    if held is not None:
        return held if isinstance(held, Origin) else Origin.KNOWN
    if name in _NUMERIC:
        return Origin.NUMBER
    if name in "@*" or (name.isdigit() and name != "0"):
        said = values.get(ARGUMENTS)
        return said if isinstance(said, Origin) else Origin.LISTING
    return Origin.LISTING if _FOLDERS.fullmatch(name) else Origin.UNKNOWN


def _of_expansion(raw: str, values: Values) -> Origin:
    """What is sure about `${name...}`: a length is a number, a trimmed name of a file is one."""
    found = _EXPANSION.fullmatch(_KEYS.sub("${", raw))
    if found is None:
        return Origin.UNKNOWN
    length, name, index, rest = found.groups()
    if length:
        return Origin.NUMBER
    origin = _of_variable(name, values)
    held = values.get(name)
    if index and isinstance(held, frozenset):
        origin = Origin.LISTING if not any(map(_has_secret, held)) else Origin.UNKNOWN
    if default := _DEFAULT.fullmatch(rest):
        text = default[1] or ""
        is_unset = origin is Origin.UNKNOWN and name not in values
        is_plain = not text.startswith("/") and ".." not in text and not names_secret(text)
        said = Origin.LISTING if is_unset else max(Origin.LISTING, origin)
        return said if is_plain else Origin.UNKNOWN
    if not rest:
        return origin
    if origin is Origin.KNOWN or not _TRIM.fullmatch(rest):
        return Origin.UNKNOWN
    return origin


def _has_secret(text: str) -> bool:
    """Whether the words of an array hold a secret's name, or what may become one."""
    words = text.strip("()").replace('"', " ").replace("'", " ").split()
    return any(sign in text for sign in "$`\\") or any(
        word.startswith(("/", "~")) or ".." in word or names_secret(word) for word in words
    )


def _of_statement(node: "Node", values: Values) -> Origin | None:
    """What is sure about its output, None for one that has none."""
    match node.type:
        case "command":
            words = _words(node)
            return None if words and words[0].text in _SILENT else _of_command(words, values)
        case "pipeline":
            return of_pipeline(node.children, values)
        case "list" | "subshell" | "compound_statement":
            return of_statements(node.children, values)
        case "redirected_statement":
            body = node.child_by_field_name("body")
            is_fed = any(
                child.type != "file_redirect" or any(part.type == "<" for part in child.children)
                for child in node.children
                if child != body
            )
            origin = None if body is None else _of_statement(body, values)
            return Origin.UNKNOWN if is_fed and origin is not Origin.NUMBER else origin
        case _:
            return Origin.UNKNOWN


def _words(node: "Node") -> list[Word]:
    if node.type == "redirected_statement":
        body = node.child_by_field_name("body")
        return [] if body is None else _words(body)
    if node.type != "command":
        return []
    kinds = ("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect")
    return [read_word(child, "~") for child in node.named_children if child.type not in kinds]


def _of_command(words: Sequence[Word], values: Values) -> Origin:
    if not words or words[0].dynamic or any(_is_unsure(word, values) for word in words[1:]):
        return Origin.UNKNOWN
    name, texts = words[0].text.rpartition("/")[2], [word.text for word in words[1:]]
    says_more = any(map(_SAYS[name].match, texts)) if name in _SAYS else False
    if says_more or name in _NUMBERS:
        return Origin.UNKNOWN if says_more else Origin.NUMBER
    if name == "jq" and not any(map(_RAW.match, texts)):
        return Origin.LISTING  # JSON is no name of a file
    if name in _LISTERS or (name in _SEARCHES and any(map(_NAMES_ONLY.fullmatch, texts))):
        return Origin.LISTING
    first = git_words(texts)[:1] if name == "git" else texts[:1]
    is_listing = not _LISTING_WORDS.get(name, frozenset()).isdisjoint(first)
    if name == "git" and first[:1] in (["diff"], ["log"], ["show"], ["grep"]):
        names = _NAMES_ONLY if first == ["grep"] else _HASHES
        is_listing = any(map(names.fullmatch, texts))
    return Origin.LISTING if is_listing else Origin.UNKNOWN


def _is_unsure(word: Word, values: Values) -> bool:
    """Whether a word of a program that lists could bring a secret's name into the list."""
    if not word.dynamic:
        return any(map(names_secret, [word.text, *word.text.split("/")]))
    names = re.findall(r"\$\{?(\w+)", word.text)
    held = [values.get(name) for name in names]
    known = [text for texts in held if isinstance(texts, frozenset) for text in texts]
    return origin_of(word, values) is Origin.UNKNOWN or any(map(names_secret, known))


def _feeds(words: Sequence[Word]) -> bool:
    return bool(words) and words[0].text in ("xargs", "while")


def _keeps(words: Sequence[Word], values: Values) -> bool:
    """Whether a part of a pipeline only leaves out lines of a list, or columns."""
    name, texts = words[0].text.rpartition("/")[2], [word.text for word in words[1:]]
    if any(word.dynamic and origin_of(word, values) is Origin.UNKNOWN for word in words):
        return False
    match name:
        case "awk" | "gawk" | "mawk":
            columns = [_COLUMN.fullmatch(text) for text in texts if not re.match(r"-F", text)]
            sought = [(column[1] or "NR").strip("/") for column in columns if column]
            return None not in columns and not any(map(_picks_secret, sought))
        case "cut" | "tr" | "sed":
            return all(map(_PICKS[name].fullmatch, texts))
        case "xargs":
            return _lists_again(texts)
        case _:
            return name in _KEEPERS or (name in _SEARCHES and _leaves_out(texts))


def _leaves_out(texts: Sequence[str]) -> bool:
    """Whether a search leaves whole names, and not just those of secrets."""
    is_inverse = any(map(_INVERSE.fullmatch, texts))
    picks = not is_inverse and any(map(_picks_secret, texts))
    return not picks and not any(map(_PIECES.fullmatch, texts))


def _lists_again(texts: Sequence[str]) -> bool:
    inner = [text for text in texts if not re.match(r"-|\d+$|\{\}$", text)]
    is_search = inner[:1] == ["grep"] and any(map(_NAMES_ONLY.fullmatch, texts))
    return is_search or inner[:1] in (["dirname"], ["basename"], ["realpath"], ["ls"])


def _picks_secret(pattern: str) -> bool:
    """Whether a search for it leaves the names of secrets and drops an ordinary one."""
    if pattern.startswith("-"):
        return False
    fits = partial(finds, pattern.replace("\\|", "|"))
    return any(fits(name) is not False for name in _SECRETS[:-2]) and not fits(_ORDINARY)
