"""Secrets: removed from stored texts, and from the variables of tools' processes."""

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

HIDDEN = "[secret]"
SHORTEST_VALUE = 8
"""The shortest value of a variable that is masked: a shorter one is likely to occur by chance."""
_BYTE, _SEXTET = 8, 6
"""Bits of a byte, and of a letter of base64."""
_WRAP = r"(?:[ \t]*(?:[\\=]?\r?\n|(?:\\r)?\\n)[ \t]*)?"
"""The end of a line in plain text, JSON, a shell or quoted-printable."""
_WORD = r"(?:api[-_]?key|access[-_]?key|secret|token|passw(?:or)?d|passphrase|pwd|credentials?)"
_AROUND = r"[\w-]{0,40}"
_QUOTED = r"\"[^\"]{0,2000}(?:\"|\Z)|'[^']{0,2000}(?:'|\Z)"
_PLAIN = r"[^\s\"'&;|-][^\s\"'&;|]*"
_NAME = re.compile(
    r"SECRET|PASSWO?R?D|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|TOKEN(?!IZER)"
    r"|(?:\A|[^A-Z])(?:KEYS?|PASS|PWD|PW|CREDS?|JWT|COOKIES?|AUTH|PAT)(?![A-Z])",
    re.ASCII,
)
"""In the name of a variable, in capitals."""
_HARMLESS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
"""Named like credentials: two folders, and a socket that gives no key away."""
_OWN = ("PEGBOARD_", "OPENCODE_")
_KEYS = (
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]{0,8000}?(?:-----END|\Z)",
    r"\b(?:sk|pk|rk)[-_][\w-]{16,}",
    r"\b(?:gh[opsur]_|github_pat_|glpat-|npm_|hf_|dop_v1_|shp[a-z]{2}_)\w{16,}",
    r"\bxox[abeoprs]-[\w-]{10,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[\w-]{30,}",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    r"\b(?:gsk_|xai-|r8_)[A-Za-z0-9]{16,}",
    r"\bpypi-Ag[\w-]{16,}",
    r"\bhv[sbr]\.[\w-]{16,}",
    r"\bSG\.[\w-]{8,}\.[\w-]{8,}",
    r"\bops_eyJ[\w-]{8,}",
    r"\bAGE-SECRET-KEY-1[A-Z0-9]{16,}",
    r"\bhttps://(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks)/[\w/-]+",
)
"""Credentials of a known form."""
_URL = r"(://[^\s/:@\"']{0,200}:)[^\s/@\"']{1,500}@"
_SHAPES = (
    *((key, HIDDEN) for key in _KEYS),
    (r"(?i)\b(authorization\s{0,4}[:=]\s{0,4}(?:\w{1,20}\s{1,4})?)[^\s\"']+", rf"\1{HIDDEN}"),
    (r"(?i)\b((?:bearer|basic)\s{1,4})[\w.~+/=-]{8,}", rf"\1{HIDDEN}"),
    (_URL, rf"\1{HIDDEN}@"),
    (
        rf"(?i)({_WORD}\w{{0,40}}[\"']?\s{{0,4}}[=:]\s{{0,4}})(?:{_QUOTED}|[^\s\"'&;|]+)",
        rf"\1{HIDDEN}",
    ),
    (rf"(?i)(--?{_AROUND}{_WORD}{_AROUND}\s{{1,4}})(?:{_QUOTED}|{_PLAIN})", rf"\1{HIDDEN}"),
)
_GIVEN = (
    r"(?i:(?:\A|[\s?&;,\"'{])(?:[a-z]{1,12}[_-])?"
    r"(?:token|password|passwd|pwd|secret|(?:api|account|access)[_-]?key|sharedaccesskey|sig)"
    r"[\"']?\s?[=:]\s?[^\s;&$][^\s;&]{3,})"
)
"""A password in a value of several parts, such as the address of a database."""
_IN_VARIABLE = "|".join(
    (
        rf"(?<![\w.-])(?<![^/]/)(?:{'|'.join(_KEYS)})|{_URL}|{_GIVEN}",
        r"(?i:\b(?:authorization\s?:|bearer\s)\s?[^\s$]{4,}|\bmachine\s+\S+\s.*\bpassword\s+\S)",
        r"://(?=\w*\d)\w{16,}@",
    )
)
"""A credential in a variable: not within a word, nor a folder of a path."""
_HAS_USER = re.compile(r"://[^/\s@]+@")
"""In the address to which a program reports its errors the user is the key."""
_NO_EDITOR = shlex.join([sys.executable, "-I", str(Path(__file__).with_name("noeditor.py"))])
_MOST_SETTINGS = 1000
"""So many settings of git are taken from variables."""
_QUIET = {
    "AGENT": "pegboard",
    **dict.fromkeys(("EDITOR", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "VISUAL"), _NO_EDITOR),
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "SSH_ASKPASS_REQUIRE": "never",
    "TERM": "dumb",
}


def secret_values(env: Mapping[str, str], names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the values of these variables and of all with a secret's name, longest first."""
    named = frozenset(names)
    found = {
        value
        for name, value in env.items()
        if len(value) >= SHORTEST_VALUE and (name in named or _is_secret_name(name.upper()))
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def redact(text: str, values: Iterable[str] = ()) -> str:
    """Return the text without these values, and without strings that look like secrets.

    If in doubt, strings are removed: `token=` and `--password` remove what follows them.
    """
    text = without_values(text, values)
    for shape, kept in _shapes():
        text = shape.sub(kept, text)
    return text


def without_values(text: str, values: Iterable[str]) -> str:
    """Remove these values from a text, in every encoding and across line breaks."""
    lines = text.replace("\\r", "").replace("\\n", "\n").replace("\\\n", "\n").replace("=\n", "\n")
    unwrapped = "".join(line.strip(" \t") for line in lines.splitlines())
    for value in values:
        for spelling in _spellings(value):
            if spelling in unwrapped or spelling in text:
                text = re.sub(_WRAP.join(map(re.escape, spelling)), HIDDEN, text)
    return text


@lru_cache(maxsize=256)
def _spellings(value: str) -> tuple[str, ...]:
    """Return a value in its plain, JSON, HTML, URL, base64 and hexadecimal forms."""
    found = {value, *(each for each in _coded(value) if len(each) >= SHORTEST_VALUE)}
    return tuple(sorted(found, key=lambda each: (-len(each), each)))


def _coded(value: str) -> Iterator[str]:
    import html  # where nothing is hidden, none of these is loaded
    import json
    from base64 import b64encode
    from urllib.parse import quote, quote_plus

    for escaped in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        yield escaped[1:-1]
        yield json.dumps(escaped[1:-1])[1:-1]
        yield escaped[1:-1].replace("/", "\\/")
    yield html.escape(value)
    yield repr(value)[1:-1]
    for quoted in (quote(value), quote(value, safe=""), quote_plus(value)):
        yield quoted
        yield re.sub("%..", lambda found: found[0].lower(), quoted)
    raw = value.encode("utf-8", "surrogateescape")
    yield raw.hex()
    for ahead in range(3):  # what stands before it, such as `user:`, moves its letters
        first, end = -(-ahead * _BYTE // _SEXTET), (ahead + len(raw)) * _BYTE // _SEXTET
        letters = b64encode(bytes(ahead) + raw).decode()[first:end]
        yield letters
        yield letters.translate({ord("+"): "-", ord("/"): "_"})


@cache
def _shapes() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Compile the patterns of secrets, at the first call."""
    return tuple((re.compile(shape), kept) for shape, kept in _SHAPES)


def child_env(env: Mapping[str, str], *, secrets: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables for a tool's process: without secrets, and without interactive programs.

    Removed are the names in `secrets` (the variables with providers' keys), variables that look
    like credentials by name (`STRIPE_KEY`, `DB_PASS`, `token`) or value (a private key, a token of
    a known form, a URL with a password), and Pegboard's own settings (`PEGBOARD_*`). The hook
    `shell_env` can add one of them for a command.

    Set are `AGENT=pegboard`, `TERM=dumb`, `cat` as pager, an editor that fails at once, and no
    prompts of git and ssh. Git takes no optional locks, which would make the user's own git fail.
    Git also finds only repositories named `.git` (`safe.bareRepository`, git-config(1)); this
    setting follows the ones in `env`.
    """
    child = without_secrets(env, secrets) | _QUIET
    count = env.get("GIT_CONFIG_COUNT") or "0"
    if not count.isdecimal():  # git refuses to run with it
        return child
    given = [
        (key, value)
        for number in range(min(int(count), _MOST_SETTINGS))
        if (key := env.get(f"GIT_CONFIG_KEY_{number}")) is not None
        and (value := child.get(f"GIT_CONFIG_VALUE_{number}")) is not None
    ]
    settings = [*given, ("safe.bareRepository", "explicit")]
    for number, (key, value) in enumerate(settings):
        child |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return child | {"GIT_CONFIG_COUNT": str(len(settings))}


def without_secrets(env: Mapping[str, str], secrets: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables for a program of the user, without secrets and Pegboard's settings."""
    hidden = {name.upper() for name in secrets}
    return {
        name: value
        for name, value in env.items()
        if not (upper := name.upper()).startswith(_OWN)
        and upper not in hidden
        and not _is_secret_name(upper)
        and not _holds_secret(value)
        and not (upper.endswith("DSN") and _HAS_USER.search(value))
    }


@lru_cache(maxsize=1024)
def _is_secret_name(name: str) -> bool:
    return name not in _HARMLESS and _NAME.search(name) is not None


@lru_cache(maxsize=1024)
def _holds_secret(value: str) -> bool:
    return re.search(_IN_VARIABLE, value) is not None
