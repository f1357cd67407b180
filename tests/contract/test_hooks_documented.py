"""Every hook says what it promises, in one order, and a test fires it through an App."""

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard.contract import apphooks
from pegboard.contract.plugin import mark_of
from support.plugins.hook_samples import SPECS as KNOWN

ROOT = Path(__file__).parents[2]
SPECS = {"register_hooks": apphooks.register_hooks, **KNOWN}
HOOKS = {name: tuple(inspect.signature(spec).parameters) for name, spec in SPECS.items()}
KINDS = {
    "collect": "Collect:",
    "fold": "Fold:",
    "first": "First:",
    "strictest": "Strictest:",
    "notify": "Notify:",
}


def paragraphs(hook: str) -> list[str]:
    """The docstring's paragraphs, each on one line."""
    text = inspect.getdoc(SPECS[hook]) or ""
    return [" ".join(each.split()) for each in text.split("\n\n")]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_says_what_it_gives_when_it_is_called_how_it_fails_and_since_when(hook: str) -> None:
    first, when, *_ = paragraphs(hook)
    kind = KINDS[mark_of(SPECS[hook]).kind]

    assert re.fullmatch(r"[A-Z][^\n]+\.", first)
    assert when.startswith("Called ")
    assert len(re.split(rf"[.;] {kind} \S", when)) == 2
    assert re.fullmatch(r"\d+\.\d+", mark_of(SPECS[hook]).since)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_explains_only_arguments_that_it_has(hook: str) -> None:
    explained = [
        name
        for paragraph in paragraphs(hook)
        if paragraph.startswith("- ")
        for name in re.findall(r"(?:^|\s)- (\w+):", paragraph)
    ]

    assert set(explained) <= set(HOOKS[hook])


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_typed_and_takes_its_subject(hook: str) -> None:
    spec = SPECS[hook]
    signature = inspect.signature(spec)

    assert all(each.annotation is not each.empty for each in signature.parameters.values())
    assert signature.return_annotation is not signature.empty
    assert (mark_of(spec).subject in HOOKS[hook]) == (mark_of(spec).kind == "fold")


def fired(folder: Path) -> Iterator[str]:
    """Yield the hooks that the tests of a folder are marked to fire."""
    for file in folder.rglob("test_*.py"):
        if "mark.fires(" not in (source := file.read_text()):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fires":
                yield from map(ast.literal_eval, node.args)


def test_a_test_fires_every_hook_through_an_app() -> None:
    assert Counter(fired(ROOT / "tests")) == Counter(HOOKS.keys())
