"""The programs that a command line may run, for policies; in doubt the answer is yes."""

import re
from collections.abc import Sequence

_SPLIT = re.compile(r"[\s=\"'();&|<>`$]+")


def may_run(command: str, *words: str) -> bool:
    """Return whether the command has these words in this order.

    Example: `may_run(pattern, "git", "push")`. Between them anything may stand, such as options
    and their values, and the first may have a path before it: `git -C . push` and
    `/usr/bin/git -c a=b push` are pushes. So is a program of the first words, `git-push`, and
    `echo git push`, since a line does not tell which program runs its arguments.
    """
    at = 0
    for word in _SPLIT.split(command):
        if at == 0:
            at = _begun(word, words)
        elif at < len(words) and words[at] == word:
            at += 1
    return at == len(words)


def _begun(program: str, words: Sequence[str]) -> int:
    """Return how many of the words the program is called by, joined by dashes."""
    names = (program, program.rpartition("/")[2])
    called = (count for count in range(len(words), 0, -1) if "-".join(words[:count]) in names)
    return next(called, 0)
