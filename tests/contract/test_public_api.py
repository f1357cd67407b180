"""The public surface changes only on purpose, and breaks nothing that a release promised."""

import difflib
import subprocess
from pathlib import Path

import pytest

from contract.api_gate import broken
from contract.public_api import STORED, describe, releases
from contract.stubs import moved_names
from support.plugins.surface import PROMISED, RINGS

ROOT = Path(__file__).parents[2]
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


def test_each_promised_name_says_since_when_it_exists() -> None:
    known = releases(STORED.read_text())

    assert {*known} == {(ring, name) for ring in PROMISED for name in RINGS[ring]}


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize("tag", _git("tag", "--list", "v*").split())
def test_no_promise_of_a_release_is_broken(tag: str) -> None:
    before = _git("show", f"{tag}:{STORED.relative_to(ROOT)}")

    assert broken(before, STORED.read_text(), moved=moved_names()) == []
    assert releases(before).items() <= releases(STORED.read_text()).items()


BEFORE = """# pegboard.files
## Diff, since 0.1
class Diff(msgspec.Struct)
  text: str
  def lines(self, *, limit: int | None=None) -> tuple[str, ...]
## diff_texts, since 0.1
async def diff_texts(old: str, new: str, *, name: str='') -> Diff
## LIMIT, since 0.1
LIMIT = 5
"""


@pytest.mark.parametrize(
    ("was", "becomes", "faults"),
    [
        ("## LIMIT, since 0.1\nLIMIT = 5\n", "", ["LIMIT: is gone; keep it as a moved name"]),
        ("  text: str\n", "", ["Diff: text is gone"]),
        ("  text: str\n", "  text: str = ''\n", []),
        ("  text: str\n", "  text: bytes\n", ["Diff: text was `text: str` and is `text: bytes`"]),
        ("  text: str\n", "  text: str\n  more: int = 0\n", []),
        (
            "  text: str\n",
            "  text: str\n  more: int\n",
            ["Diff: more is a new field without a default"],
        ),
        ("*, name: str=''", "*, name: str='', style: str='plain'", []),
        ("*, name: str=''", "*, style: str", ["has no argument name", "needs the argument style"]),
        ("*, name: str=''", "*, name: str", ["needs the argument name"]),
        ("(old: str, new: str", "(new: str, old: str", ["takes its arguments in another order"]),
        ("(old: str, new: str", "(old: str | bytes, new: str", []),
        ("limit: int | None=None", "limit: int=1", ["Diff: lines takes fewer types for limit"]),
        ("async def", "def", ["is awaited no longer, or must be now"]),
    ],
)
def test_the_gate_names_what_breaks(was: str, becomes: str, faults: list[str]) -> None:
    assert was in BEFORE

    found = broken(BEFORE, BEFORE.replace(was, becomes))

    assert len(found) == len(faults)
    assert [each for each, said in zip(found, faults, strict=True) if not each.endswith(said)] == []


def test_a_name_that_still_leads_somewhere_may_move() -> None:
    now = BEFORE.replace("LIMIT", "MOST")

    assert broken(BEFORE, now, moved={"pegboard.files.LIMIT"}) == []
