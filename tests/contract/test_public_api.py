"""The public surface changes only on purpose."""

import difflib

from contract.public_api import STORED, describe

ACCEPT = "PYTHONPATH=tests python -m contract.public_api > tests/contract/public_api.txt"


def test_the_public_surface_is_what_was_promised() -> None:
    promised = STORED.read_text().splitlines()

    current = describe().splitlines()

    difference = "\n".join(
        difflib.unified_diff(promised, current, "promised", "current", lineterm="")
    )
    assert not difference, (
        f"\n{difference}\n\nA plugin may rely on each of these lines. Adding is fine, removing or"
        f" changing breaks somebody. When it is meant, accept it with:\n    {ACCEPT}\n"
    )
