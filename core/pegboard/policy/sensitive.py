"""Sensitive paths: files that programs run by themselves, and files with secrets."""

import re
from collections.abc import Iterable
from pathlib import Path

from pegboard.policy.autorun import autorun_reason, holds_autorun

_TOOL_FOLDERS = frozenset({"tool", "tools", "plugin", "plugins"})
_HELD = "hello.py"
"""A file that is protected in a folder of tools, and in no other folder."""
_HOME_FILES = re.compile(
    r"\.(bash|zsh|ksh|csh|tcsh|mksh)\w*|\.(profile|login|logout|zprofile|zlogin|kshrc|inputrc)"
    r"|\.(vimrc|exrc|gitconfig|npmrc|yarnrc|pypirc|netrc|pythonrc|Rprofile|xprofile|xsession\w*"
    r"|xinitrc|pam_environment|curlrc|wgetrc|gdbinit|screenrc|tmux\.conf|hgrc|lldbinit)"
)
_HOME_FOLDERS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".config/fish",
    ".config/git",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".config/pegboard",
    ".local/share/pegboard",
    ".local/state/pegboard",
    ".pegboard",
    ".oh-my-zsh",
    "Library/LaunchAgents",
)
_SECRET_NAME = re.compile(
    r"\.env|\.env[._-].+|.+\.env|\.envrc|.+\.(pem|key|p12|pfx|jks|keystore|kdbx|asc|ppk|ovpn)"
    r"|id_(rsa|dsa|ecdsa|ed25519)(_sk)?|\.netrc|_netrc|\.pgpass|\.my\.cnf|\.npmrc|\.pypirc"
    r"|\.git-credentials|\.htpasswd|credentials(\.(json|ya?ml|toml|ini|xml|csv))?|auth\.json"
    r"|client_secret.*\.json|service[-_]?account.*\.json|secrets?\.(json|ya?ml|toml|ini)"
    r"|\.dockercfg|kubeconfig|terraform\.tfstate(\.backup)?|.+\.tfvars|wallet\.dat|shadow|gshadow",
    re.IGNORECASE,
)
_NO_SECRET_NAME = re.compile(
    r".*\.env\.(example|sample|template|dist|test|defaults?)|.*\.pub|(example|sample)\.env"
    r"|.*(example|sample|template).*|cacert\.pem|ca-bundle.*",
    re.IGNORECASE,
)
_COPY_ENDS = (
    *("~", "#", ".bak", ".backup", ".old", ".orig", ".save", ".saved", ".tmp"),
    *(".copy", "-copy", "_copy", " copy", ".swo", ".swp", ".swx"),
)
"""What editors and people add to the name of a file that they keep a copy of."""
_SECRET_FOLDERS = (
    (".ssh",),
    (".gnupg",),
    (".aws",),
    (".azure",),
    (".kube",),
    (".docker", "config.json"),
    (".config", "gcloud"),
    (".config", "gh"),
    (".password-store",),
)
_NO_SECRET_FILES = frozenset({"known_hosts", "config", "authorized_keys"})
_HOME_SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".oci"),
    *(".netrc", "_netrc", ".git-credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass"),
    *(".my.cnf", ".vault-token", ".terraform.d", ".boto", ".s3cfg", ".databrickscfg"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml"),
    *(".gradle/gradle.properties", ".nuget/NuGet/NuGet.Config", ".composer/auth.json"),
    *(".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op"),
    *(".config/git/credentials", ".config/doctl", ".config/containers/auth.json"),
    *(".config/google-chrome", ".config/chromium", ".mozilla", ".thunderbird"),
    *(".local/share/keyrings", ".local/share/opencode/auth.json", ".claude", ".codex"),
    *("Library/Keychains", ".bash_history", ".zsh_history", ".python_history"),
    *(".psql_history", ".mysql_history", ".node_repl_history"),
)
_PROCESS_SECRETS = re.compile(
    r"/proc/[^/]+/(task/[^/]+/)?"
    r"(environ|cmdline|mem|auxv|(numa_)?maps|smaps(_rollup)?|pagemap|stack|syscall"
    r"|(fd|fdinfo)/\d+|(map_files|root|cwd)/.+)"
    r"|/proc/environ|/proc/k(core|allsyms)|/dev/k?mem"
)
"""What tells of a process: its variables, words, memory and open files (proc(5)).

`/proc/environ` is what is left of a path where nobody knows which process it names.
"""


def protected_path(
    path: Path, *, worktree: Path, home: Path, private: Iterable[Path] = ()
) -> str | None:
    """Why a change of this path could run code later or change permissions, None if it cannot.

    `path` is absolute with symlinks resolved; it need not exist. `private` are the folders and
    files of Pegboard itself and of git. Protected are also files that programs run or obey by
    themselves (`policy.autorun`), the project's tools, keys, and folders that hold such files
    outside of the project.
    """
    for place in private:
        if path.is_relative_to(place):
            return "it belongs to Pegboard or git itself"
        if place.is_relative_to(path) and not _holds_all(path, worktree, home):
            return f"it holds {place}, which belongs to Pegboard or git itself"
    if path.is_relative_to(worktree):
        return _in_project(path.relative_to(worktree).parts)
    if path.is_relative_to(home):
        return _in_home(path.relative_to(home))
    return autorun_reason(str(path))


def protected_folder(
    path: Path, *, worktree: Path, home: Path, private: Iterable[Path] = ()
) -> str | None:
    """`protected_path` for a folder or a link at this path, with the files that it may hold.

    The arguments are those of `protected_path`.
    """
    places = tuple(private)
    reasons = (
        protected_path(each, worktree=worktree, home=home, private=places)
        for each in (path, path / _HELD)
    )
    if found := next((reason for reason in reasons if reason), None):
        return found
    below = path.relative_to(worktree) if path.is_relative_to(worktree) else path
    return "programs run what may stand there" if holds_autorun(str(below)) else None


def secret_path(path: Path) -> bool:
    """Whether a file of this name is likely to hold a key, a token or a password."""
    if _PROCESS_SECRETS.fullmatch(str(path)):
        return True
    name = _original(path.name.lower())
    if _SECRET_NAME.fullmatch(name):
        return _NO_SECRET_NAME.fullmatch(name) is None
    return any(_has(path.parts, folder) for folder in _SECRET_FOLDERS) and not (
        path.name in _NO_SECRET_FILES or path.suffix == ".pub"
    )


def _original(name: str) -> str:
    """The name of the original of a backup copy, or the name itself."""
    end = len(name)
    while name.endswith(_COPY_ENDS, 0, end):
        end -= next(len(each) for each in _COPY_ENDS if name.endswith(each, 0, end))
    return name[:end].lstrip("#") if 0 < end < len(name) else name


def home_secrets(home: Path) -> tuple[Path, ...]:
    """The paths below a home folder that usually hold keys, logins or histories of input."""
    return tuple(home / name for name in _HOME_SECRETS)


def _holds_all(path: Path, worktree: Path, home: Path) -> bool:
    """Whether the path is above the project or the home, which the permission `destroy` guards."""
    return worktree.is_relative_to(path) or home.is_relative_to(path)


def _in_project(parts: tuple[str, ...]) -> str | None:
    if reason := autorun_reason("/".join(parts)):
        return reason
    lower = tuple(part.lower() for part in parts)  # some disks ignore case
    is_tool = len(lower) == len(("tool", "hello.py")) and lower[0] in _TOOL_FOLDERS
    if is_tool and lower[1].endswith(".py"):
        return "Pegboard may load it as a tool"
    return None


def _in_home(path: Path) -> str | None:
    if len(path.parts) == 1 and _HOME_FILES.fullmatch(path.name):
        return "a program runs it when it starts"
    above = any(Path(folder).is_relative_to(path) for folder in _HOME_FOLDERS)
    if (above and path.parts) or any(path.is_relative_to(folder) for folder in _HOME_FOLDERS):
        return "it decides what may log in, or what runs at a start"
    return autorun_reason(str(path))


def _has(parts: tuple[str, ...], folder: tuple[str, ...]) -> bool:
    return any(parts[at : at + len(folder)] == folder for at in range(len(parts)))
