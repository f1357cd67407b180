"""Variables with which a program can be made to run another one, and values with which not.

The names are those that the manuals of bash, ld.so, git and the common interpreters give.
"""

import re

from pegboard_plugins.bash.syntax import Word

_HIJACKS = re.compile(
    r"PATH|IFS|ENV|CDPATH|BASH_.*|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|SHELL|ZDOTDIR|FPATH"
    r"|.*PAGER|EDITOR|VISUAL|.*_EDITOR|BROWSER|LESS.*|MANOPT|.*_ASKPASS|LD_.*|DYLD_.*|GCONV_PATH"
    r"|LOCPATH|GLIBC_TUNABLES|MALLOC_.*|PERL.*|RUBY.*|PYTHON(STARTUP|HOME|BREAKPOINT|INSPECT|WARNINGS)"
    r"|GIT_.*|GLOBIGNORE|HISTFILE|INPUTRC|HOME|OLDPWD|PWD|DIRSTACK|TMPDIR|NODE_OPTIONS|NODE_PATH"
    r"|(?i:NPM_CONFIG_.*)|.*JAVA.*OPTIONS|MAVEN_OPTS|GRADLE_OPTS|MAKEFLAGS|MAKEFILES|GNUMAKEFLAGS"
    r"|TAR_OPTIONS|RSYNC_RSH|CVS_RSH|.*_WRAPPER|.*_LAUNCHER|.*RUNNER|OPENSSL_CONF|RUSTC|CARGO"
    r"|.*_COMMAND|.*_CMD|OPTIND|COMP_.*|FUNCNEST|LC_.*|LANG|LANGUAGE|TERMINFO.*|RIPGREP_CONFIG_PATH"
    r"|GREP_OPTIONS|XDG_CONFIG_.*|CURL_HOME|WGETRC|POSIXLY_CORRECT|CC|CXX|LD|AR|GO(FLAGS|ROOT)|_.*"
)
_TAME = tuple(
    (re.compile(names), re.compile(values))
    for names, values in (
        (
            r"GIT_.*PAGER|.*PAGER|GIT_.*EDITOR|EDITOR|VISUAL|BROWSER",
            r"(/usr)?(/bin/)?(cat|true)|:|",
        ),
        (r"GIT_(AUTHOR|COMMITTER)_.*", r"[\w .@<>:+-]*"),
        (r"GIT_(TERMINAL_PROMPT|OPTIONAL_LOCKS|(MERGE_)?AUTOEDIT|TRACE\w*)", r"\w*"),
        (
            r"NODE_OPTIONS",
            r"(--(max[-_]old[-_]space[-_]size=\d+|openssl-legacy-provider|no-warnings)\s*)*",
        ),
        (r"LC_.*|LANG|LANGUAGE", r"[A-Za-z]*(_[A-Z]+)?(\.(UTF|utf)-?8)?"),
        (r"PYTHONWARNINGS", r"\w*"),
        (r"IFS", r"[ ,:;|\n\t]?"),
        (r"MAKEFLAGS", r"-?[jskw\d]*"),
        (r"TMPDIR", r"[\w./-]*"),
        (r"CC|CXX|AR|LD", r"(gcc|clang|cc|[gc]\+\+|clang\+\+|ar|ld)(-\d+)?"),
        (r"LESS", r"-\w*"),
        (r"(?i:NPM_CONFIG_.*)", r"true|false|\d+|silent|error|warn|verbose"),
        (r"PS1", r"[^`$]*"),
        (r"CDPATH|OLDPWD", r""),
    )
)
_TAME_FOLDER = re.compile(
    r"\$PATH|(~|\$HOME|\$PWD|\$\w+_ROOT|\$NVM_DIR|\$VIRTUAL_ENV)/[\w./-]+|/(usr|opt|bin|sbin)[\w./-]*"
    r"|(\./)?node_modules/\.bin|\.?venv/bin"
)


def hijacks(name: str, word: Word | None, how: str = "=") -> bool:
    """Whether the variable can make a program run another one with what it is given here."""
    if not _HIJACKS.fullmatch(name):
        return False
    if word is None or how == "for":
        return True
    if name == "PATH":
        return how != "=" or not _is_tame_path(word)
    values = next((values for names, values in _TAME if names.fullmatch(name)), None)
    return values is None or word.literal is None or values.fullmatch(word.literal) is None


def _is_tame_path(word: Word) -> bool:
    """Folders that are written out, of the system, the home or the project, besides `$PATH`."""
    shown = "".join(
        f"${piece.text}" if piece.kind == "variable" and not piece.how else piece.shown
        for piece in word.pieces
    )
    folders = shown.split(":")
    return all(_TAME_FOLDER.fullmatch(each) and ".." not in each for each in folders)
