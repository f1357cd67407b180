"""Which of the arguments that make a program run another one are usual, and say what is run."""

import re
from collections.abc import Callable, Mapping, Sequence

from pegboard_plugins.bash.flags import git_words

_HOST = r"/(etc|root|home|usr|var|boot|dev|proc|sys|bin|lib)?/?:.*"
_FOR_ALL = re.compile(
    rf"(-v=?|--volume=)?{_HOST}|--privileged.*|--pid.*|--entrypoint.*|.*(source|src)=/(,.*)?"
)
_SSH_RUNS = re.compile(
    r"(Proxy|Local|KnownHosts)\w*Command|Include|PKCS11Provider|SecurityKey", re.IGNORECASE
)
_GIT_TAME = re.compile(r"core\.pager=(cat)?|core\.editor=(true|:|cat)")
_GIT_RUNS = re.compile(
    r"(alias|filter|include\w*|credential|gpg|browser|\w*tool|sequence|uploadpack|url|man)\..*"
    r"|core\.(sshcommand|pager|editor|fsmonitor|hookspath|gitproxy|askpass|attributesfile"
    r"|alternaterefscommand|worktree)\b.*|(diff|merge)\..*(external|command|textconv|driver).*"
    r"|pager\..*|protocol\..*|init\.templatedir.*|remote\..*(uploadpack|receivepack|vcs).*"
    r"|submodule\..*update.*|http\..*proxy.*",
    re.IGNORECASE | re.DOTALL,
)
_GIT_RUN_OPTIONS = re.compile(
    r"--exec-path=.*|--(upload-pack|receive-pack|exec|ext-diff|textconv|open-files-in-pager"
    r"|extcmd|config-env|template).*|ext::.*|-[xO].*"
)
_REBASE_OPTIONS = re.compile(r"--exec=.*|-x.+")
_GIT_ACTS = frozenset({"filter-branch", "difftool", "mergetool", "daemon", "upload-pack", "hook"})
_GDB_RUNS = re.compile(r".*(shell|!|python|source|pipe|\|).*", re.DOTALL)
_CMAKE_DOES = re.compile(r"copy\w*|make_directory|touch\w*|echo\w*|capabilities|cat|compare_files")
_SED_RUNS = re.compile(
    r"(?:^|[;{}\n]|\d|\$|/I?)\s*e(?:\s|$)|s([^\s\w\\;])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1"
    r"[gIipmM\d]*e"
)


def is_usual(base: str, texts: Sequence[str]) -> bool:
    """Whether such an argument of the program is one of those that are seen all day."""
    name = base.rstrip("0123456789.")
    check = _USUAL.get(name)
    return check is not None and check(texts)


def runs_by_sed(texts: Sequence[str]) -> bool:
    """Whether a script of sed runs commands."""
    return any(_SED_RUNS.search(text) for text in texts if not text.startswith("--"))


def _always(_: Sequence[str]) -> bool:
    return True


def _lacks(pattern: str) -> Callable[[Sequence[str]], bool]:
    expression = re.compile(pattern, re.DOTALL | re.IGNORECASE)
    return lambda texts: not any(map(expression.search, texts))


def _of_docker(texts: Sequence[str]) -> bool:
    return not any(map(_FOR_ALL.fullmatch, texts))


def _of_ssh(texts: Sequence[str]) -> bool:
    return not any(map(_SSH_RUNS.search, texts)) and not any(text[:2] == "-S" for text in texts)


def _of_rsync(texts: Sequence[str]) -> bool:
    values = [
        text.partition("=")[2] if text.startswith("--rsh=") else " ".join(texts[at + 1 : at + 2])
        for at, text in enumerate(texts)
        if re.fullmatch(r"-[A-Za-z]*e|--rsh(=.*)?", text, re.DOTALL)
    ]
    is_ssh = all(re.fullmatch(r"ssh( [^;&|$`]*)?", value) for value in values)
    return bool(values) and is_ssh and not any(map(_SSH_RUNS.search, values))


def _of_cmake(texts: Sequence[str]) -> bool:
    acts = [" ".join(texts[at + 1 : at + 2]) for at, text in enumerate(texts) if text == "-E"]
    return all(map(_CMAKE_DOES.fullmatch, acts))


def _of_make(texts: Sequence[str]) -> bool:
    pairs = [text for text in texts if re.match(r"\.?\w+\s*[:+?!]*=", text)]
    return not any(
        text.startswith(("SHELL", ".SHELLFLAGS")) or re.search(r"[;&|`$()<>\n]", text)
        for text in pairs
    ) and not any(text.startswith("--ev") for text in texts)


def _of_git(texts: Sequence[str]) -> bool:
    values = [" ".join(texts[at + 1 : at + 2]) for at, text in enumerate(texts) if text == "-c"]
    settings = [value for value in values if not _GIT_TAME.fullmatch(value)]
    words = git_words(texts)
    options = _REBASE_OPTIONS if "rebase" in words[:1] else _GIT_RUN_OPTIONS
    runs = any(map(_GIT_RUNS.fullmatch, settings)) or any(map(options.fullmatch, texts))
    acts = not _GIT_ACTS.isdisjoint(words[:1])
    return not (runs or acts)  # what `bisect run` and the like run is judged by itself


def _of_man(texts: Sequence[str]) -> bool:
    values = [" ".join(texts[at + 1 : at + 2]) for at, text in enumerate(texts) if text == "-P"]
    return values == ["cat"]


_USUAL: Mapping[str, Callable[[Sequence[str]], bool]] = {
    "bat": _lacks(r"--pager(?!=(cat|never)$)"),
    "cmake": _of_cmake,
    "crontab": lambda texts: list(texts) == ["-l"],
    "docker": _of_docker,
    "fd": _always,
    "fdfind": _always,
    "gdb": lambda texts: not any(map(_GDB_RUNS.fullmatch, texts)),
    "git": _of_git,
    "gmake": _of_make,
    "make": _of_make,
    "man": _of_man,
    "pip": _always,
    "podman": _of_docker,
    "psql": _lacks(r"\\!|\\copy.*program|copy.*program"),
    "pytest": _always,
    "rsync": _of_rsync,
    "scp": _of_ssh,
    "sftp": _of_ssh,
    "sqlite": _lacks(r"\.(shell|system|load|import)"),
    "ssh": _of_ssh,
    "zip": _lacks(r"-T{2}|--unzip-command"),
}
