"""Whether a command line may run a program: for policies, so it errs on the side of yes."""

import re

_SPLIT = re.compile(r"[\s=\"'();&|<>`$]+")


def may_run(command: str, *words: str) -> bool:
    """Whether the command has these words in this order: `may_run(pattern, "git", "push")`.

    Between them anything may stand, such as options and what belongs to them, and the first may
    have a path before it: `git -C . push` and `/usr/bin/git -c a=b push` are pushes. So is
    `echo git push`, since who runs what it is given cannot be known from a line.
    """
    at = 0
    for word in _SPLIT.split(command):
        if at < len(words) and words[at] in (word, word.rpartition("/")[2] if not at else word):
            at += 1
    return at == len(words)
