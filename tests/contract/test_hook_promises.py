"""The page of hooks is a promise: what a release listed stays, with its kind and arguments."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = "docs/reference/hooks.md"
_HOOK = re.compile(
    r"^### (\w+)\n\n```py\ndef \w+\((.*)\) -> .*\n```\n\nKind: (\w+)\. Since (\S+)\.$", re.MULTILINE
)


class Promise(NamedTuple):
    """The kind of a hook, the version it came with, and the names of its arguments."""

    kind: str
    since: str
    arguments: frozenset[str]


def promises(page: str) -> dict[str, Promise]:
    """Return the promise of each hook on a page."""
    return {
        name: Promise(kind, since, frozenset(re.findall(r"(\w+):", signature)))
        for name, signature, kind, since in _HOOK.findall(page)
    }


def broken(before: dict[str, Promise], now: dict[str, Promise]) -> list[str]:
    """Return the hooks that are gone, or differ in kind or version, or lack an argument."""
    return [
        name
        for name, old in before.items()
        if (new := now.get(name)) is None
        or (new.kind, new.since) != (old.kind, old.since)
        or old.arguments - new.arguments
    ]


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize("tag", _git("tag", "--list", "v*").split())
def test_no_promise_of_a_release_is_broken(tag: str) -> None:
    before = promises(_git("show", f"{tag}:{PAGE}"))

    assert broken(before, promises((ROOT / PAGE).read_text())) == []


@pytest.mark.parametrize(
    ("was", "becomes", "hooks"),
    [
        ("### chat_headers\n", "### chat_heads\n", ["chat_headers"]),
        ("Kind: notify. Since 0.1.", "Kind: collect. Since 0.1.", ["startup", "event", "shutdown"]),
        (", headers: Mapping[str, str]) ->", ") ->", ["chat_headers"]),
        ("Called before each request", "Called after each request", []),
    ],
)
def test_a_broken_promise_is_found(was: str, becomes: str, hooks: list[str]) -> None:
    page = (ROOT / PAGE).read_text()
    assert was in page

    assert broken(promises(page), promises(page.replace(was, becomes))) == hooks
