"""Lines that delete a home or a repository, in the forms that hide it: text, files, options, code.

Each form is built of a base, which holds the deletion, and of what is put around it. All can be
run: what a machine does not have fails, and destroys nothing.
"""

import json
import shlex
from base64 import b64encode
from itertools import product

from support.tools.cases import DATA

STUBS = ("rm -rf ~", "rm -rf .git")
_WORDS = {STUBS[0]: ("rm", "-rf", "~"), STUBS[1]: ("rm", "-rf", ".git")}
_EXPANDED = {STUBS[0]: "rm -rf $HOME", STUBS[1]: "rm -rf .git"}
FORMS = json.loads((DATA / "destroying_forms.json").read_text(encoding="utf-8"))


def _based(base, stub):
    words = _WORDS[stub]
    home = {"~": "$HOME"}.get(words[2], words[2])
    return base.format(
        stub,
        *words,
        home,
        q=shlex.quote(stub),
        e=_EXPANDED[stub],
        r=shlex.quote(stub[::-1]),
        b=b64encode(stub.encode()).decode(),
    )


def bases():
    """The forms of a deletion without what is put around them."""
    stubbed = [_based(base, stub) for stub, base in product(STUBS, FORMS["of_stub"])]
    return [*stubbed, *FORMS["of_home"], *FORMS["of_git"], *FORMS["others"]]


def forms():
    """All lines: each base with everything around it."""
    found: dict[str, None] = {}
    for around, base in product(FORMS["around"], bases()):
        is_quoted = "{q}" in around
        if "\n" in base and not is_quoted and around != "{0}":
            continue  # the name of a here-document would not stand alone in its line
        found[around.format(base, q=shlex.quote(base))] = None
    return list(found)
