"""Every hook says what it promises, in one order, and a test fires it through an App."""

import inspect
import re
from pathlib import Path

import pytest

from contract.fired import FIRED_BY, WITHOUT_CALLER
from hook_samples import SPECS as KNOWN
from pegboard.contract import hookspecs
from pegboard.contract.plugin import mark_of

ROOT = Path(__file__).parents[2]
SPECS = {"register_hooks": hookspecs.register_hooks, **KNOWN}
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
    first, when, *_, since = paragraphs(hook)
    kind = KINDS[mark_of(SPECS[hook]).kind]

    assert re.fullmatch(r"[A-Z][^\n]+\.", first)
    assert when.startswith("Called ")
    assert len(re.split(rf"[.;] {kind} \S", when)) == 2
    assert re.fullmatch(r"Since \d+\.\d+\.", since)


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


def test_every_hook_is_fired_by_a_test_or_has_no_caller() -> None:
    assert FIRED_BY.keys() | WITHOUT_CALLER.keys() == HOOKS.keys()
    assert FIRED_BY.keys() & WITHOUT_CALLER.keys() == set()


@pytest.mark.parametrize(("hook", "test"), FIRED_BY.items())
def test_the_test_that_fires_a_hook_exists(hook: str, test: str) -> None:
    file, _, name = test.partition("::")

    assert f"def {name}(" in (ROOT / file).read_text(), hook


@pytest.mark.parametrize("hook", WITHOUT_CALLER)
def test_a_hook_that_gets_a_caller_needs_a_test(hook: str) -> None:
    sources = [path for root in ("core", "plugins") for path in (ROOT / root).rglob("*.py")]

    calling = [path.name for path in sources if f"hookspecs.{hook}," in path.read_text()]

    assert calling == []
