"""Variables with which a program can be made to run another one."""

import re
from collections.abc import Sequence

from pegboard_plugins.bash.words import Word

_HIJACK = re.compile(
    r"PATH|IFS|ENV|CDPATH|BASH_.*|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|SHELL|ZDOTDIR|FPATH"
    r"|PAGER|MANPAGER|.*_PAGER|EDITOR|VISUAL|.*_EDITOR|BROWSER|LESS.*|MANOPT|SSH_ASKPASS|SUDO_.*"
    r"|NODE_.*|NPM_CONFIG_.*|npm_config_.*|PERL5.*|PERL_.*|RUBY.*|GEM_.*|BUNDLE_.*|PHP.*|LUA_.*"
    r"|LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|GLIBC_TUNABLES|MALLOC_.*|PYTHON.*|GIT_.*|JAVA_.*|_JAVA_.*"
    r"|JDK_.*|MAVEN_.*|GRADLE_.*|MAKEFLAGS|MAKEFILES|GNUMAKEFLAGS|CC|CXX|AR|LD|RUSTC.*|CARGO_.*"
    r"|GO(FLAGS|ROOT|TOOLCHAIN)|TAR_OPTIONS|RIPGREP_CONFIG_PATH|GREP_OPTIONS|RSYNC_RSH|CVS_RSH"
    r"|HOME|XDG_.*|TERMINFO.*|OPENSSL_CONF|CURL_HOME|WGETRC|KUBECONFIG|DOCKER_HOST|.*_PROXY"
    r"|.*_proxy|HOSTALIASES|PIP_.*|UV_.*|NIX_PATH|.*_WRAPPER|.*_LAUNCHER|POSIXLY_CORRECT"
)
_HARMLESS = re.compile(
    r"GIT_(AUTHOR|COMMITTER)_.*|GIT_TERMINAL_PROMPT|GIT_OPTIONAL_LOCKS|GIT_(MERGE_)?AUTOEDIT"
    r"|PYTHON(DONTWRITEBYTECODE|UNBUFFERED|HASHSEED|UTF8|IOENCODING|FAULTHANDLER|DEVMODE)"
    r"|NODE_ENV|NODE_NO_WARNINGS|RUST_(LOG|BACKTRACE)|CARGO_TERM_.*|PIP_(NO|DISABLE)_.*|UV_NO_.*"
)
_HARMLESS_VALUES = frozenset({"", "cat", "true", ":", "/bin/true", "/usr/bin/true", "/bin/cat"})
_VALUE_DECIDES = re.compile(r"(.*_)?(PAGER|EDITOR)|VISUAL|MANPAGER")


def hijacks(name: str, value: Word) -> bool:
    """Whether a variable with this value can make a program run another one."""
    if not _HIJACK.fullmatch(name) or _HARMLESS.fullmatch(name):
        return False
    plain = not value.dynamic and value.text in _HARMLESS_VALUES
    return not (plain and _VALUE_DECIDES.fullmatch(name))


def assigned(words: Sequence[Word]) -> list[tuple[str, Word]]:
    """The `NAME=value` among the words, up to the first that is none and no option.

    The name of one that is appended to ends in a plus.
    """
    found = []
    for word in words:
        name, equals, value = word.text.partition("=")
        if equals and re.fullmatch(r"\w+\+?", name):
            found.append((name, Word(value, dynamic=word.dynamic)))
        elif not word.text.startswith("-"):
            break
    return found
