"""Variables with which a program can be made to run another one."""

import re
from collections.abc import Sequence
from dataclasses import replace

from pegboard_plugins.bash.words import Word

_HIJACK = re.compile(
    r"PATH|IFS|ENV|CDPATH|BASH_.*|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|SHELL|ZDOTDIR|FPATH"
    r"|PAGER|MANPAGER|.*_PAGER|EDITOR|VISUAL|.*_EDITOR|BROWSER|LESS.*|MANOPT|SSH_ASKPASS|SUDO_.*"
    r"|NODE_.*|NPM_CONFIG_.*|npm_config_.*|PERL5.*|PERL_.*|RUBY.*|GEM_.*|BUNDLE_.*|PHP.*|LUA_.*"
    r"|LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|GLIBC_TUNABLES|MALLOC_.*|PYTHON.*|GIT_.*|JAVA_.*|_JAVA_.*"
    r"|JDK_.*|MAVEN_.*|GRADLE_.*|MAKEFLAGS|MAKEFILES|GNUMAKEFLAGS|CC|CXX|AR|LD|RUSTC.*|CARGO_.*"
    r"|GO(FLAGS|ROOT|TOOLCHAIN)|TAR_OPTIONS|RIPGREP_CONFIG_PATH|GREP_OPTIONS|RSYNC_RSH|CVS_RSH"
    r"|HOME|OLDPWD|DIRSTACK|XDG_.*|TERMINFO.*|OPENSSL_CONF|CURL_HOME|WGETRC|KUBECONFIG|DOCKER_HOST|.*_PROXY"
    r"|.*_proxy|HOSTALIASES|PIP_.*|UV_.*|NIX_PATH|.*_WRAPPER|.*_LAUNCHER|POSIXLY_CORRECT"
)
_HARMLESS = re.compile(
    r"GIT_(AUTHOR|COMMITTER)_.*|GIT_TERMINAL_PROMPT|GIT_OPTIONAL_LOCKS|GIT_(MERGE_)?AUTOEDIT"
    r"|PYTHON(DONTWRITEBYTECODE|UNBUFFERED|HASHSEED|UTF8|IOENCODING|FAULTHANDLER|DEVMODE)"
    r"|NODE_ENV|NODE_NO_WARNINGS|RUST_(LOG|BACKTRACE)|CARGO_TERM_.*|PIP_(NO|DISABLE)_.*|UV_NO_.*"
)
_HARMLESS_VALUES = frozenset({"", "cat", "true", ":", "/bin/true", "/usr/bin/true", "/bin/cat"})
_VALUE_DECIDES = re.compile(r"(.*_)?(PAGER|EDITOR)|VISUAL|MANPAGER")
_COMMANDS = (
    r"ENV|BASH_.*|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|SHELL|.*PAGER|.*EDITOR|VISUAL|BROWSER"
    r"|LESSOPEN|LESSCLOSE|SSH_ASKPASS|SUDO_ASKPASS|LD_(PRELOAD|AUDIT).*|DYLD_INSERT.*|GCONV_PATH"
    r"|GIT_(SSH.*|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND|CONFIG.*|EXEC_PATH|TEMPLATE_DIR|DIR)"
    r"|PERL5(OPT|DB)|PYTHON(STARTUP|BREAKPOINT|INSPECT)|RUBYOPT|RSYNC_RSH|CVS_RSH"
    r"|.*_WRAPPER|.*_LAUNCHER|CARGO_.*RUNNER|MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES|TAR_OPTIONS"
    r"|OPENSSL_CONF|ZDOTDIR|MANOPT"
)
_TAME = tuple(
    (re.compile(name), re.compile(value, re.DOTALL))
    for name, value in (
        ("CDPATH|OLDPWD|DIRSTACK", ""),
        ("MAKEFLAGS", r"[-jskw\d\s]*"),
        ("CC|CXX|AR|LD|RUSTC.*", r"[\w.+-]+( [\w.+= -]+)?"),
        (
            "NODE_OPTIONS|_?JAVA_.*|JDK_.*|MAVEN_.*|GRADLE_.*|GOFLAGS",
            r"(?!.*(^|\s)(-r|--require|--import|-javaagent\S*|-toolexec)\b).*",
        ),
        (_COMMANDS, "|".join(map(re.escape, sorted(_HARMLESS_VALUES)))),
    )
)
"""Variables that name programs or folders of such, and the values of them that do not."""
_IS_OPEN = re.compile(r"(/tmp|/var/tmp|/dev/shm)(/|$)|\.?$")
"""Folders into which anybody may put a program, and the one that the line happens to be in."""
_DYNAMIC = re.compile(r"[$`]")


def hijacks(name: str, value: Word) -> bool:
    """Whether a variable with this value can make a program run another one."""
    if not _HIJACK.fullmatch(name) or _HARMLESS.fullmatch(name):
        return False
    plain = not value.dynamic and value.text in _HARMLESS_VALUES
    return not (plain and _VALUE_DECIDES.fullmatch(name))


def names_program(name: str, value: str) -> bool:
    """Whether this value of such a variable is a command, or puts other programs before known ones.

    Nobody judges it then: what is called afterwards may be something else.
    """
    match name:
        case "PATH":
            folders = value.split(":")
            return any(map(_IS_OPEN.match, folders[:-1] or folders))
        case "IFS":  # what is split by another letter is another command
            return value.strip() != ""
        case "HOME":
            return not value.startswith(("/tmp/", "."))  # noqa: S108 - named, not used
    plain = next((tame for kind, tame in _TAME if kind.fullmatch(name)), None)
    return plain is not None and plain.fullmatch(value) is None


def assigned(words: Sequence[Word]) -> list[tuple[str, Word]]:
    """The `NAME=value` among the words, up to the first that is none and no option.

    The name of one that is appended to ends in a plus.
    """
    found = []
    for word in words:
        name, equals, value = word.text.partition("=")
        if equals and re.fullmatch(r"\w+\+?", name):
            at_start = word.leads or _DYNAMIC.match(value) is not None
            found.append((name, replace(word, text=value, leads=at_start)))
        elif not word.text.startswith("-"):
            break
    return found
