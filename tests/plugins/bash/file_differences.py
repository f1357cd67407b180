"""What lines do with files and their judgement does not name."""

import os
import re
from dataclasses import dataclass
from functools import cache

from pegboard.files import resolved_path
from pegboard.unstable import shell_escape, shell_paths
from pegboard_plugins.bash.scan import StartPlace, scan
from pegboard_plugins.bash.wildcards import looked_up
from plugins.bash.file_box import environment, observed, project_of

GIT_OWN = re.compile(
    r".*/\.git/(index|objects/.*|logs(/.*)?|refs/.*|[A-Z_]+|packed-refs|worktrees(/.*)?|.*\.lock)"
)
"""What git writes at each of its commands: no hook, and no configuration."""
SECRET = re.compile(r".*/(\.env|\.env\.local|\.ssh/id_rsa|private/key\.pem)")
_CLASS = re.compile(r"\[:(\w+):\]")
_CLASSES = {"alpha": "a-zA-Z", "digit": "0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s"}


@dataclass(frozen=True)
class Difference:
    """A path that a line reads or changes (`kind`) and that its judgement does not name."""

    line: str
    kind: str
    path: str


def _says(pattern):
    return re.compile(pattern, re.DOTALL).search


_finds, _types = _says(r"\bfind\b"), _says(r"\bfile -f\b")
_calls_git, _lists = _says(r"\bgit\b"), _says(r"\$\(|`|\||<")
_unpacks = _says(
    r"\bpatch\b|\btar\b.*x|\bgit\b.*\b(apply|checkout|switch|stash|restore|reset|clean|clone)\b"
)
_goes_deep = _says(
    r"\b(grep|cp|diff|tar|zip)\b[^;|&\n]*(?<= )(-\w*[rRac]\w*|cf?) [^;|&\n]*"
    r"(?<=[ \"'])(\.{1,2}|\.\./proj|~(/proj)?|\$PWD|\$\(pwd\)|\$HOME(/proj)?)"
    r"(/\.?)?\"?(?=[\s;)&|'\"]|$)"
)
"""A command that goes through a folder in which other words of the line are wildcards."""
EXPLAINED = {
    "git writes its own files": lambda each: (
        each.kind != "secret" and GIT_OWN.fullmatch(each.path) and _calls_git(each.line)
    ),
    "git keeps a setting of the user in its configuration": lambda each: (
        each.path.endswith("/.git/config") and "git config user.name" in each.line
    ),
    "git reads the repository and the project": lambda each: (
        each.kind == "read" and _calls_git(each.line)
    ),
    "the names stand in a patch, an archive or a commit": lambda each: (
        not re.search(r"/\.git/(hooks|config)", each.path) and _unpacks(each.line)
    ),
    "find looks for names in a folder that it names": lambda each: (
        each.kind == "read" and _finds(each.line)
    ),
    "a whole folder is searched or copied, which says nothing of each file": lambda each: (
        each.kind in ("read", "secret") and _goes_deep(each.line)
    ),
    "a folder is searched in which wildcards of the line were looked up": lambda each: (
        each.kind == "read"
        and (found := re.search(r"\bgrep -r \w+ (\w+)$", each.line))
        and f"/{found[1]}/" in each.path
    ),
    "only the types of files are read": lambda each: each.kind == "read" and _types(each.line),
    "a listing gives the name of a link, or the line makes one": lambda each: (
        (_lists(each.line) or re.search(r"\bln\b.*[|&;]", each.line))
        and each.kind in ("content", "new")
        and "/home/proj/" not in each.path
    ),
    "a name with brackets that is not quoted is a wildcard again": lambda each: (
        re.search(r"\[.*\$[A-Za-z]", each.line) and re.search(r"/[ax]\.txt", each.path)
    ),
    "a listing gives names that are read": lambda each: each.kind == "read" and _lists(each.line),
}
"""What differs without breaking a promise, each with the reason."""


@cache
def fits(pattern):
    """The expression of a shell's wildcards, which fits a path and all below it."""
    found, at, pattern = "", 0, os.path.normpath(pattern)
    while at < len(pattern):
        sign, at = pattern[at], at + 1
        end = pattern.find("]", at + 1 + (pattern[at : at + 1] in ("!", "^")))
        while _CLASS.search(pattern[at : end + 1]) and pattern[end - 1] == ":":
            end = pattern.find("]", end + 1)
        if pattern[at - 1 : at + 2] == "**/":
            found, at = f"{found}(.*/)?", at + 2
        elif sign == "*":
            found += "[^/]*"
        elif sign == "?":
            found += "[^/]"
        elif sign == "[" and end > 0:
            inner = pattern[at:end].replace("\\", "\\\\").replace("[", "\\[")
            inner = re.sub(r"\\\[:(\w+):\]?", lambda each: _CLASSES[each[1]], inner)
            negated = inner[0] in "!^"
            found += f"[^/{inner[1:]}]" if negated else f"[{inner}]"
            at = end + 1
        else:
            found += re.escape(sign)
    return re.compile(f"{found}(/.*)?", re.DOTALL)


def _guises(path):
    """A path with its own link followed, and with those before it alone."""
    text = str(path)
    yield resolved_path(text)
    if text.rpartition("/")[2] not in ("", ".", ".."):
        yield _placed(text)


def _placed(path):
    folder, _, name = path.rpartition("/")
    return f"{resolved_path(folder or '/').rstrip('/')}/{name}"


def _is_in(path, folder):
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


class Named:
    """What the judgement of a line names.

    A wildcard is named with its folder, which then stands for itself and not for all that is in it.
    """

    def __init__(self, found, project):
        self.found = found
        self.project = str(project)
        self.wild = {
            is_written: {
                _real_glob(each): resolved_path(each.folder)
                for each in found.globs
                if each.is_written >= is_written
            }
            for is_written in (False, True)
        }
        self.matched = {guise for each in found.globs for guise in _matched(each)}
        self.patterns = [text for text in (*found.destroys, *found.overlays) if text]
        self.is_asked = bool(found.hazards) or "" in found.destroys
        self.written = {guise for path in found.writes for guise in _guises(path)}

    def _has(self, path, paths, *, is_written):
        wild = self.wild[is_written]
        named = {guise for each in paths for guise in _guises(each)}
        folders = {os.path.normpath(each.folder) for each in self.found.globs}
        alone = (each for each in paths if os.path.normpath(each) not in folders)
        whole = {guise for each in alone for guise in _guises(each)}
        whole |= {guise for each in paths if each.name == "*" for guise in _guises(each.parent)}
        return (
            path in named | self.matched
            or any(_is_in(path, each) for each in whole)
            or any(fits(each).fullmatch(path) for each, folder in wild.items() if folder in named)
        )

    def changes(self, path):
        """Whether it names that a path is changed, or a folder in which it is."""
        placed = (*self.found.lands, *self.found.linked)
        return (
            self.is_asked
            or (self.reads(path) and not _is_in(path, self.project))  # whatever is done there
            or self._has(path, self.found.writes, is_written=True)
            or any(_is_in(path, guise) for each in placed for guise in _guises(each))
            or any(fits(each).fullmatch(path) for text in self.patterns for each in _whole(text))
        )

    def follows(self, path, how):
        """Whether a change follows from one that it names: a `.bak` of it, or the folder for it."""
        if how == "new" and any(
            path.startswith(each) and "/" not in path[len(each) :] for each in self.written
        ):
            return True
        placed = {guise for each in self.found.lands for guise in _guises(each)}
        return how in ("new", "gone") and any(_is_in(each, path) for each in self.written | placed)

    def is_passing(self, path):
        """Whether a file is written where a program may put one for a while."""
        folder = path.rpartition("/")[0]
        return folder in {each.rpartition("/")[0] for each in self.written}

    def reads(self, path):
        """Whether it names that a path is read, or a folder in which it is."""
        return self._has(path, self.found.paths, is_written=False)


def _matched(each):
    """The paths that a wildcard fits, or its own where it fits none."""
    return (guise for text in (*shell_paths(each.pattern), each.path) for guise in _guises(text))


def _real_glob(each):
    """A wildcard with the links before its first sign followed."""
    behind = each.pattern[len(shell_escape(each.folder)) :]
    return f"{shell_escape(resolved_path(each.folder))}/{behind}"


def _whole(text):
    """A path or wildcard with the links before its first sign followed."""
    yield text.rstrip("/")
    folder = re.split(r"[*?\[]", text)[0].rpartition("/")[0]
    yield f"{shell_escape(resolved_path(folder or '/'))}/{text[len(folder) :]}"


def judged(line, root):
    """The judgement of a line in the project."""
    project = project_of(root)
    place = StartPlace(
        cwd=project, home=root / "home", worktree=project, environment=environment(root)
    )
    return looked_up(scan(line, place), line)


def differences(lines, root, *, traced=False):
    """The known ones of the lines, and what they do that is neither named nor explained."""
    found = {line: judged(line, root) for line in lines}
    known = [line for line in found if found[line].unclear is None]
    differ = []
    for line, seen in zip(known, observed(known, root, traced=traced), strict=True):
        missed = _missed(Named(found[line], project_of(root)), seen, root)
        differ += [each for pair in missed if not explanation(each := Difference(line, *pair))]
    return known, differ


def explanation(difference):
    """Why a difference is none that a rule promises to see; empty for any other."""
    return next((why for why, explains in EXPLAINED.items() if explains(difference)), "")


def _missed(named, seen, root):
    for path, how in seen["changed"].items():
        if not named.changes(path) and not named.follows(path, how):
            yield how, path
    for path in seen["read"]:
        if not named.reads(path):
            yield "secret" if SECRET.fullmatch(path) else "read", path
    for path in {_placed(path) for path in seen["calls"]} - seen["changed"].keys():
        is_here = path.startswith(f"{root}/") and not os.path.lexists(path)
        if is_here and not named.changes(path) and not named.is_passing(path):
            yield "passing", path
