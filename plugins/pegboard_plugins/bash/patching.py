"""The files that a patch for `patch`, `git apply` or `git am` changes."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pegboard_plugins.bash.findings import WalkState
from pegboard_plugins.bash.programs import git_words, option_values
from pegboard_plugins.bash.syntax import Operand

_NAMED = re.compile(
    r"^(?:\+\+\+|---|\*\*\*|Index:|rename \w+|diff --git) +([^\s]+)(?: ([^\s]+))?", re.MULTILINE
)
_LONGEST = 1 << 20
_TELLS_ONLY = re.compile(r"--(check|cached|dry-run|stat|numstat|summary|show-current-patch\S*)")
PATCHERS = frozenset({"git", "patch"})
_OF_GIT = (["apply"], ["am"])
_ANY = Operand("./*", bare=False, wild=False)


def patched(
    base: str, words: Sequence[Operand], texts: Sequence[str], findings: WalkState
) -> Iterator[Operand]:
    """Yield the files that a patch would change; a wildcard for any file if it names no file.

    The patch is in an existing file, or in the `texts` of the command's input.
    """
    arguments, is_git = [word.text for word in words], base == "git"
    is_other = is_git and git_words(arguments)[:1] not in _OF_GIT
    if is_other or any(map(_TELLS_ONLY.fullmatch, arguments)):
        return
    patches = [*_in_files(words, findings), *texts]
    found = [name for patch in patches for name in _named_in(patch, words, is_git=is_git)]
    named = [word for word in words if not word.text.startswith("-")]
    yield from (Operand(name, bare=False, wild=False) for name in dict.fromkeys(found))
    yield from [] if is_git else named[:1]
    if not found:
        yield _ANY


def _in_files(words: Sequence[Operand], findings: WalkState) -> Iterator[str]:
    """Yield the patches in existing files that the command names."""
    named = [word for word in words if not word.text.startswith("-")]
    files = [*option_values(words, ("-i", "--input")), *named[1:]]
    if findings.fed is not None and findings.fed.kind == "file" and findings.fed.word:
        files += findings.operands([findings.fed.word])
    paths = (Path(path) for word in files for path in findings.places(word))
    for path in (path for path in paths if path.is_file()):
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            yield file.read(_LONGEST)


def _named_in(patch: str, words: Sequence[Operand], *, is_git: bool) -> Iterator[str]:
    """Yield the names in a patch, without the folders that `-p` strips."""
    texts = [word.text for word in words]
    count = next((text[2:] for text in texts if re.fullmatch(r"-p\d", text)), "")
    folders = option_values(words, ("--directory",) if is_git else ("-d", "--directory"))
    folder = "".join(f"{word.text.rstrip('/')}/" for word in [*folders][-1:])
    every = (name for names in _NAMED.findall(patch) for name in names)
    for name in (name for name in every if name not in ("", "/dev/null")):
        if not is_git:
            yield folder + name
        yield folder + "/".join(name.split("/")[int(count or is_git) :])
