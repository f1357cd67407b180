"""Arguments with which a program does what its name does not say: run another, or write files."""

import re
from collections.abc import Sequence

from pegboard_plugins.bash.environment import hijacks
from pegboard_plugins.bash.words import Word
from pegboard_plugins.bash.wrappers import INTERPRETERS

_EXECUTES = {
    "tar": r"-[A-Za-z]*[IF].*",
    "fd": r"-[A-Za-z]*[xX].*|--exec.*",
    "hyperfine": r".*",
    "watchexec": r".*",
    "nodemon": r"-x.*|--exec.*",
    "bat": r"--pager.*",
    "ag": r"--pager.*",
    "cmake": r"-[PE]",
    "man": r"-[PH].*|--(pager|html).*",
    "rg": r"--(pre|hostname-bin)(=.*)?",
    "rsync": r"-[A-Za-z]*e.*|--(rsh|rsync-path).*",
    "scp": r"-[So].*",
    "sftp": r"-[SoDb].*",
    "ssh": r"-o.*|-[A-Za-z]*F.*",
    "zip": r"-[A-Za-z]*T.*|--(unzip-command).*",
    "make": r"SHELL=.*|\.SHELLFLAGS=.*",
    "gdb": r"-(ex|x|iex|ix|eval-command|command).*|--(ex|eval-command|command|args).*",
    "vim": r"[-+](c|S|es|s)?.*",
    "vi": r"[-+](c|S|es|s)?.*",
    "nvim": r"[-+](c|S|es|s)?.*",
    "ex": r".*",
    "ed": r".*",
    "emacs": r"--?(eval|execute|l|load|f|funcall|script|batch).*",
    "less": r"\+.*|-[kK].*|--lesskey.*",
    "split": r"--filter.*",
    "pip": r"--(index-url|extra-index-url|python).*|-i",
    "docker": r"-v.*|--(volume|mount|privileged|pid|entrypoint).*",
    "podman": r"-v.*|--(volume|mount|privileged|pid|entrypoint).*",
    "sqlite3": r"-(cmd|init)|\.(shell|system|load|import).*",
    "psql": r"-[A-Za-z]*c|--command.*|\\!.*",
    "cargo": r"--config.*",
    "go": r"--?(exec|toolexec|vettool).*",
    "pytest": r"-p.*|--(import-mode|pyargs).*",
    "sed": r"--expression.*;?\b[ew].*",
    "dpkg": r"--pre-invoke.*|-o.*",
    "apt": r"-o.*|--option.*",
    "apt-get": r"-o.*|--option.*",
    "crontab": r".*",
    "at": r".*",
    "batch": r".*",
}
_LONG = {
    "tar": (
        *("--checkpoint-action", "--use-compress-program", "--to-command", "--info-script"),
        *("--new-volume-script", "--rsh-command", "--rmt-command"),
    ),
    "sort": ("--compress-program", "--output"),
    "sed": ("--in-place", "--file", "--expression"),
    "git": (
        *("--output", "--ext-diff", "--textconv", "--upload-pack", "--receive-pack", "--extcmd"),
        *("--open-files-in-pager", "--template", "--separate-git-dir"),
    ),
    "man": ("--pager", "--html"),
    "split": ("--filter",),
    "curl": ("--output", "--remote-name", "--config", "--cookie-jar", "--dump-header"),
    "date": ("--set",),
    "pip": ("--index-url", "--extra-index-url", "--python"),
    "gdb": ("--eval-command", "--command", "--args"),
}
"""Options that do such things, and may be shortened to whatever says which one is meant."""
_NOT_SHORTENED = frozenset({"--text", "--checkpoint"})
"""Options of their own with which another one begins."""
_COMPILERS = re.compile(r"(gcc|clang|cc|[gc]\+\+|clang\+\+)(-\d+)?")
_WRITES = {
    "sort": r"-[A-Za-z]*o.*|--o(utput|utpu|utp|ut|u)?(=.*)?",
    "find": r"-(delete|fprint|fprint0|fprintf|fls)",
    "sed": r"-[A-Za-z]*i.*|--in-place.*|-s?i.*",
    "perl": r"-[A-Za-z0]*i.*",
    "curl": r"-[A-Za-z]*[oOcDK].*|--(output|remote-name|remote-name-all|cookie-jar|dump-header"
    r"|config|trace|trace-ascii|output-dir|create-dirs).*",
    "wget": r".*",
    "tree": r"-o.*",
    "git": r"--output.*",
    "yq": r"-[A-Za-z]*i.*|--inplace.*",
    "xxd": r"-[A-Za-z]*r.*",
    "openssl": r"-out.*",
    "gofmt": r"-w",
    "date": r"-s|--set.*",
    "hostname": r"[^-].*",
}
_CODE = {
    "perl": r"-[A-Za-z0]*[eEMm].*",
    "ruby": r"-[A-Za-z0]*[er].*",
    "node": r"-[A-Za-z]*[epr].*|--(eval|print|require|import|loader|experimental-loader).*",
    "python": r"-[A-Za-z]*c.*",
    "php": r"-[A-Za-z]*[rRBE].*",
    "lua": r"-[A-Za-z]*[el].*",
    "deno": r"eval",
    "bun": r"-[A-Za-z]*[ep].*|--(eval|print).*",
    "Rscript": r"-e.*",
    "osascript": r"-e.*",
    "julia": r"-[A-Za-z]*[eE].*",
    "pwsh": r"-c.*|-C.*|-e.*|-E.*",
    "make": r"--eval.*|--ev.*",
    "sqlite3": r".*(load_extension|writefile|edit\().*",
}
_SAME = {
    **dict.fromkeys(("python2", "python3", "pypy", "pypy3"), "python"),
    **dict.fromkeys(("gtar", "bsdtar"), "tar"),
    "nodejs": "node",
    "fdfind": "fd",
    "batcat": "bat",
    "gmake": "make",
    "luajit": "lua",
    "irb": "ruby",
    "pip3": "pip",
    "gsed": "sed",
    "gfind": "find",
    "gsort": "sort",
}
_AWK = frozenset({"awk", "gawk", "mawk", "nawk", "original-awk", "busybox-awk"})
_AWK_ACTS = re.compile(r"system\s*\(|getline|\||@|\bprintf?\b[^;}\n]*>|\bclose\s*\(|\bARGV\b")
_AWK_FILES = r"-[fEil].*|--(f|ex|i|lo)[a-z]*(=.*)?"
_SED_COMMAND = re.compile(
    r"\s*(?:(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)(?:,[+~]?(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?))?)?\s*!?\s*"
    r"(?:s([^\s\w\\;])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gIipmM\d]*"
    r"|y([^\s\w\\;])(?:(?!\2)[^\\\n]|\\.)*\2(?:(?!\2)[^\\\n]|\\.)*\2"
    r"|[pPdDnNgGhHxlFz={}]|[qQ]\s*\d*|[bt:]\s*\w*|[aic]\\?[^\n]*)?\s*(?:[;\n}]|$|(?<=\{))"
)
_SED_FILE = re.compile(r"(?:^|[\s;{}\d$/!,])[wWrR]\s+([^\n;}]+)")
_GIT_CONFIG = re.compile(
    r"(user\.|author\.|committer\.|color\.|core\.(quotepath|autocrlf|pager=(cat)?$)|advice\."
    r"|init\.defaultbranch|commit\.gpgsign=false|gc\.auto|diff\.(color|context|renames)|log\."
    r"|core\.fsmonitor=false|safe\.directory)",
    re.IGNORECASE,
)
_GIT_EXECUTES = re.compile(
    r"--exec-path=.*|--(upload-pack|receive-pack|exec|ext-diff|textconv|open-files-in-pager"
    r"|extcmd|config-env|config|template|separate-git-dir|git-dir|work-tree).*|ext::.*"
)
_GIT_ACTS = frozenset(
    {"filter-branch", "difftool", "mergetool", "bisect-run", "daemon", "upload-pack", "hook"}
)
_GIT_HOOKED = re.compile(
    r"(alias|filter|diff|merge|difftool|mergetool|credential|gpg|sequence|include|includeif|url"
    r"|remote|submodule|http|protocol|uploadpack|pager|trailer|browser|instaweb|man|core)\..*",
    re.IGNORECASE,
)
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"})
_REMOTE = re.compile(r"[\w+.-]+://.*|[\w.-]+@[\w.-]+:.*")


def sayings(base: str, words: Sequence[Word]) -> list[str]:
    """What keeps the command from being known by its name: codes of doubts."""
    name = _SAME.get(base, base)
    texts = [word.text for word in words]
    found = []
    if _any(_EXECUTES.get(name), texts):
        found.append("exec-flag")
    if _shortened(name, texts) or (name == "make" and any(map(_makes_run, texts))):
        found.append("exec-flag")
    if name == "tar" and _any(r"[A-Za-z]*[IF][A-Za-z]*", texts[:1]):
        found.append("exec-flag")
    if _any(_WRITES.get(name), texts):
        found.append("write-flag")
    if _any(_CODE.get(name), texts) or (name == "sed" and not _is_plain_sed(texts)):
        found.append("interpreter-code")
    if base in _AWK and (any(map(_AWK_ACTS.search, texts)) or _any(_AWK_FILES, texts)):
        found.append("interpreter-code")
    if name == "git":
        found += _of_git(texts)
    return found


def sed_files(texts: Sequence[str]) -> list[str]:
    """The files that a sed script names."""
    return [path.strip() for text in texts for path in _SED_FILE.findall(text)]


def reads_code(base: str, texts: Sequence[str]) -> bool:
    """Whether the program would run what it is fed: no script is named, or `-` is."""
    if base in ("make", "gmake"):
        return any(
            text in ("-f-", "--file=-", "--makefile=-")
            or (text == "-" and texts[at - 1 : at] in (["-f"], ["--file"], ["--makefile"]))
            for at, text in enumerate(texts)
        )
    if base not in INTERPRETERS or base in _AWK:
        return False
    operands = [text for text in texts if not text.startswith("-") or text == "-"]
    is_told = operands or _any(r"-[a-z]*[mV].*|--version|--help|-h", texts)
    return not is_told or "-" in operands


def _shortened(name: str, texts: Sequence[str]) -> bool:
    options = [text.partition("=")[0] for text in texts if text not in _NOT_SHORTENED]
    return any(
        long.startswith(option)
        for option in options
        if option.startswith("--") and len(option) > len("--")
        for long in _LONG.get(name, ())
    )


def _makes_run(text: str) -> bool:
    """Whether a variable that is given to make holds what it would run."""
    found = re.fullmatch(r"(\w+)\s*[:+?!]*=(.*)", text, re.DOTALL)
    if found is None:
        return False
    name, value = found.groups()
    is_program = hijacks(name, Word(value)) and _COMPILERS.fullmatch(value) is None
    return is_program or re.search(r"[;&|`$()<>\n]", value) is not None


def _any(pattern: str | None, texts: Sequence[str]) -> bool:
    return pattern is not None and any(re.fullmatch(pattern, text, re.DOTALL) for text in texts)


def _is_plain_sed(texts: Sequence[str]) -> bool:
    """Whether the script of a sed can neither run nor write, as far as we can read it."""
    scripts = [
        texts[at + 1] if text in ("-e", "--expression") and at + 1 < len(texts) else ""
        for at, text in enumerate(texts)
    ]
    scripts = [script for script in scripts if script] or [
        text for text in texts if not text.startswith("-")
    ][:1]
    return all(_is_plain_script(script) for script in scripts) and not _any(
        r"-[a-zA-Z]*f.*|--file.*|--expression=.*|-e.+", texts
    )


def _is_plain_script(script: str) -> bool:
    at = 0
    while at < len(script):
        found = _SED_COMMAND.match(script, at)
        if found is None or found.end() == at:
            return False
        at = found.end()
    return True


def git_config(texts: Sequence[str]) -> str:
    """The file in which a `git config` sets what git may run; empty for another command."""
    words = git_words(texts)
    if words[:1] != ["config"] or not _any(_GIT_HOOKED.pattern, texts) or len(words) <= len("ck"):
        return ""
    if words[1] in ("get", "list") or _any(r"--get.*|--list|-l", texts):
        return ""
    for at, text in enumerate(texts[:-1]):
        if text in ("-f", "--file"):
            return texts[at + 1]
    return "~/.gitconfig" if "--global" in texts else ".git/config"


def git_words(texts: Sequence[str]) -> list[str]:
    """The subcommand and what follows, without options, and before it without their values."""
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        at += 2 if texts[at] in _GIT_VALUED else 1
    return [text for text in texts[at:] if not text.startswith("-")]


def _of_git(texts: Sequence[str]) -> list[str]:
    found = []
    for at, text in enumerate(texts):
        if text == "-c" and not _GIT_CONFIG.match(" ".join(texts[at + 1 : at + 2])):
            found.append("exec-flag")
    words = git_words(texts)
    if _any(_GIT_EXECUTES.pattern, texts) or not _GIT_ACTS.isdisjoint(words[:1]):
        found.append("exec-flag")
    if {"rebase", "grep"} & set(words[:1]) and _any(r"-[xO].*", texts):
        found.append("exec-flag")
    if words[:2] in (["bisect", "run"], ["submodule", "foreach"], ["submodule", "update"]):
        found.append("exec-flag")
    if git_config(texts):
        found.append("exec-flag")
    if "push" in words[:2] and any(_REMOTE.fullmatch(text) for text in words):
        found.append("network")
    return found
