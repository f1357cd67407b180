"""git: its commands, and the options of each with which it runs another program.

Source: `git help` of 2.39 to 2.47; an alias may be anything, so only known commands are.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial

from pegboard_plugins.bash.line import Call, Rule
from pegboard_plugins.bash.listings import is_unknown
from pegboard_plugins.bash.options import git_words
from pegboard_plugins.bash.syntax import Word
from pegboard_plugins.bash.values import ANYTHING

_COMMANDS = frozenset(
    {
        *("add", "am", "annotate", "apply", "archive", "bisect", "blame", "branch", "bundle"),
        *("cat-file", "check-attr", "check-ignore", "check-ref-format", "checkout", "cherry"),
        *("cherry-pick", "clean", "clone", "commit", "commit-tree", "config", "count-objects"),
        *("describe", "diff", "diff-files", "diff-index", "diff-tree", "fetch", "for-each-ref"),
        *("format-patch", "fsck", "gc", "grep", "hash-object", "help", "init", "log", "ls-files"),
        *("ls-remote", "ls-tree", "merge", "merge-base", "mv", "name-rev", "notes", "prune"),
        *("pull", "push", "range-diff", "read-tree", "rebase", "reflog", "remote", "repack"),
        *("replace", "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog"),
        *("show", "show-branch", "show-ref", "sparse-checkout", "stash", "status", "submodule"),
        *("switch", "symbolic-ref", "tag", "update-index", "update-ref", "var", "verify-commit"),
        *("verify-tag", "version", "whatchanged", "worktree", "write-tree", "--version", "--help"),
        *("checkout-index", "merge-file", "merge-tree", "mktree", "maintenance", "lfs", "-v", "-h"),
    }
)
_FLAGS = frozenset(
    {
        *("--no-pager", "-P", "--no-optional-locks", "--paginate", "-p", "--bare"),
        *("--literal-pathspecs", "--no-replace-objects"),
    }
)
_TAME_SETTING = re.compile(
    r"(user|author|committer|color|advice|log|init|commit|gc|i18n|column|safe|feature|index|pack"
    r"|push|pull|fetch|rebase)\.[\w.-]*(=[\w@. <>:/+-]*)?|merge\.ff=\w*"
    r"|core\.(quotepath|autocrlf|pager|fsmonitor|editor|longpaths|filemode|bare)"
    r"=(cat|true|false|input|:|)|diff\.(color|context|renames|algorithm)\S*=\w*"
    r"|http\.(sslverify|version|postbuffer|lowspeed\w+)=[\w/.]*",
    re.IGNORECASE,
)
_HOOKED = re.compile(
    r"(alias|filter|diff|merge|difftool|mergetool|credential|gpg|sequence|include|includeif|url"
    r"|remote|submodule|http|protocol|uploadpack|pager|trailer|browser|instaweb|man"
    r"|core(?!\.(autocrlf|quotepath|filemode|ignorecase|longpaths)$))\..*",
    re.IGNORECASE,
)
_ANYWHERE = r"--(exec|upload-pack|receive-pack|exec-path)(=|$)|ext::"
_SHOWS = r"--(ou|ext(?!ended)|te(?!xt\b))"
_RUNS: Mapping[str, str] = {
    **dict.fromkeys(("log", "show", "whatchanged", "diff-tree", "diff-index"), _SHOWS),
    **dict.fromkeys(("diff", "diff-files", "stash"), _SHOWS),
    "reflog": r"--ext-",
    "blame": r"--te|--ext-",
    "grep": r"-[A-Za-z]*O|--op|--te|--ext-",
    "clone": r"-u|--upl|-c$|--conf|--te|-[A-Za-z]*[cu]",
    "fetch": r"--upl",
    "pull": r"--upl|-x|--exec",
    "ls-remote": r"--upl|--exec",
    "push": r"--rec(?!u)|--exec",
    "rebase": r"-[A-Za-z]*x|--ex",
    "archive": r"--exec|--remote",
    "bisect": r"visualize|view",
    "submodule": r"add$|--command",
    "init": r"--te|--sep",
    "am": r"--(exec|te)",
    "branch": r"--edit-d",
    "cat-file": r"--te|--fi",
    "bundle": r"create",
    "difftool": r"",
    "config": r"-e$|--ed|--bl",
    "var": r"GIT_EDITOR=",
    "lfs": r"-|install|update",
    "help": r"-w|-i|--web|--info",
    "maintenance": r"start|register",
    "send-email": r"",
    "sparse-checkout": r"--te",
}


def is_open(call: Call, word: Word, text: str) -> bool:
    """Whether a word may come to any option, as no list of files does."""
    return text.startswith(ANYTHING) and is_unknown(word, call.line.values)


def git(call: Call) -> None:
    """A known command of git, without options that make it run something."""
    words, at = call.words, 0
    while at < len(words):
        text = words[at].literal
        if text == "-C":
            at += 2
        elif text == "-c":
            if at + 1 >= len(words) or not _TAME_SETTING.fullmatch(words[at + 1].shown):
                raise call.no("git-option", words[at])
            at += 2
        elif text in _FLAGS:
            at += 1
        else:
            break
    if at >= len(words):
        if call.command.is_fed:
            raise call.no("git-command")
        return
    name = words[at].literal
    if name not in _COMMANDS:
        raise call.no("git-command", words[at])
    rest = words[at + 1 :]
    if not _runs(call, name, rest):
        call.line.later.append(partial(_refuse_options, call, name, rest))


def _runs(call: Call, name: str, words: Sequence[Word]) -> bool:
    """Judge what `bisect run`, `submodule foreach` and `rebase -x` run, if it is one of them."""
    texts = [word.literal for word in words]
    if name == "bisect" and texts[:1] == ["run"] and words[1:]:
        call.start(words[1:])
        return True
    if name == "submodule" and "foreach" in texts[:2]:
        behind = words[texts.index("foreach") + 1 :]
        inner = [word for word in behind if word.literal not in ("--recursive", "--quiet")]
        if len(inner) == 1 and inner[0].literal is not None:
            call.run(inner[0].literal, inner[0])
        elif inner:
            call.start(inner)
        return True
    marks = [at for at, text in enumerate(texts) if text in ("-x", "--exec")]
    if name == "rebase" and marks:
        for at in marks:
            code = texts[at + 1] if at + 1 < len(texts) else None
            if code is None:
                raise call.no("dynamic-code", words[at])
            call.run(code, words[at + 1])
        return True
    return False


def _refuse_options(call: Call, name: str, words: Sequence[Word]) -> None:
    runs = _RUNS.get(name)
    for before, word in zip(["", *(each.literal for each in words)], words, strict=False):
        if word.literal == "--":
            return
        if before in ("-m", "--message", "-F"):
            continue
        for text in call.line.values.words([word]):
            is_option = runs is not None and (re.match(runs, text) or is_open(call, word, text))
            if is_option or (name != "commit" and re.match(_ANYWHERE, text)):
                raise call.no("git-option", word)


def git_config(texts: Sequence[str]) -> str:
    """The file in which a `git config` sets what git may run; empty for another command."""
    words = git_words(texts)
    if words[:1] != ["config"] or not any(map(_HOOKED.fullmatch, texts)) or len(words) <= len("ck"):
        return ""
    if words[1] in ("get", "list") or any(re.match(r"--get|--list$|-l$", text) for text in texts):
        return ""
    for at, text in enumerate(texts[:-1]):
        if text in ("-f", "--file"):
            return texts[at + 1]
    return "~/.gitconfig" if "--global" in texts else ".git/config"


RULES: Mapping[str, Rule] = {"git": git}
