"""The test whether a command line may run some program; if in doubt, the answer is yes."""

import re
from collections.abc import Sequence

_SPLIT = re.compile(r"[\s=\"'();&|<>`$]+")


def may_run(command: str, *words: str) -> bool:
    """Return whether the command may run a program with these words in this order.

    Example: `may_run(pattern, "git", "push")`. Other words, such as options, may stand between
    them, and the program may have a path. Thus `git -C . push`, `/usr/bin/git -c a=b push` and the
    program `git-push` count as pushes. So does `echo git push`, because a command line does not
    show which program runs its arguments.
    """
    at = 0
    for word in _SPLIT.split(command):
        if at == 0:
            at = _begun(word, words)
        elif at < len(words) and words[at] == word:
            at += 1
    return at == len(words)


def _begun(program: str, words: Sequence[str]) -> int:
    """Return how many of `words`, joined by dashes, form the name of the program."""
    names = (program, program.rpartition("/")[2])
    called = (count for count in range(len(words), 0, -1) if "-".join(words[:count]) in names)
    return next(called, 0)
