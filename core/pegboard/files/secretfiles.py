"""Files that probably hold secrets, judged by file name, and the rules for reading such files."""

import re
from collections.abc import Sequence
from pathlib import Path

from pegboard.policy.permissions import judge_rules
from pegboard.schema.session import Ruleset

_READ = "read"
"""The permission to see what a file holds."""
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
_PROCESS_SECRETS = re.compile(
    r"/proc/[^/]+/(task/[^/]+/)?"
    r"(environ|cmdline|mem|auxv|(numa_)?maps|smaps(_rollup)?|pagemap|stack|syscall"
    r"|(fd|fdinfo)/\d+|(map_files|root|cwd)/.+)"
    r"|/proc/environ|/proc/k(core|allsyms)|/dev/k?mem"
)
"""The files of a process that reveal its variables, arguments, memory and open files (proc(5)).

`/proc/environ` is what is left of a path if the process that it names is unknown.
"""


_SERVER_TOKEN = re.compile(r"/pegboard/server-\d+\.json$")
"""The files in Pegboard's state whose reader may answer permission requests."""


def secret_path(path: Path) -> bool:
    """Return whether a file with this name probably holds a key, a token or a password."""
    if _PROCESS_SECRETS.fullmatch(str(path)) or _SERVER_TOKEN.search(str(path)):
        return True
    name = _original(path.name.lower())
    if _SECRET_NAME.fullmatch(name):
        return _NO_SECRET_NAME.fullmatch(name) is None
    if path.name in _NO_SECRET_FILES or path.suffix == ".pub":
        return False
    parts, places = path.parts, range(len(path.parts))
    return any(parts[at : at + len(each)] == each for each in _SECRET_FOLDERS for at in places)


def _original(name: str) -> str:
    """Return the name of the file that a backup copy was made from, or the name itself."""
    end = len(name)
    while name.endswith(_COPY_ENDS, 0, end):
        end -= next(len(each) for each in _COPY_ENDS if name.endswith(each, 0, end))
    return name[:end].lstrip("#") if 0 < end < len(name) else name


def may_read(rulesets: Sequence[Ruleset], path: str, *, home: Path | None = None) -> bool:
    """Return whether the permission rules let a tool read this file without asking the user.

    For a secret file, only rules narrower than `*` count. Other files may be read without any rule.
    A search leaves out files that may not be read.
    """
    if not secret_path(Path(path)):
        verdict = judge_rules(rulesets, _READ, [path], home=home)
        return verdict.action == "allow" or verdict.rule is None
    narrow = tuple(
        rule
        for ruleset in rulesets
        for rule in ruleset.rules
        if rule.permission == _READ and rule.pattern != "*"
    )
    ruleset = Ruleset(source="config", rules=narrow)
    return judge_rules([ruleset], _READ, [path], home=home).action == "allow"


def may_name(rulesets: Sequence[Ruleset], path: str, *, home: Path | None = None) -> bool:
    """Return whether a listing may contain this file; secret files need permission to read."""
    return not secret_path(Path(path)) or may_read(rulesets, path, home=home)
