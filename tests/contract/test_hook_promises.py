"""The hooks of a release stay: what was promised since a version is compared with what there is."""

import inspect
import re
from pathlib import Path

from hook_samples import SPECS as KNOWN
from pegboard.contract import hookspecs
from pegboard.contract.plugin import mark_of

STORED = Path(__file__).with_name("hook_promises.txt")
SPECS = {"register_hooks": hookspecs.register_hooks, **KNOWN}


def promise(hook: str) -> str:
    """A hook with its kind, the version it came with, and its arguments."""
    spec = SPECS[hook]
    since = re.search(r"Since (\d+\.\d+)\.", inspect.getdoc(spec) or "")
    assert since is not None, hook
    return f"{hook} {mark_of(spec).kind} {since[1]} {' '.join(inspect.signature(spec).parameters)}"


def test_every_hook_is_promised_with_the_version_that_it_came_with() -> None:
    stored = {line.split()[0] for line in STORED.read_text().splitlines()}

    assert SPECS.keys() - stored == set(), (
        "add the hook's line: its promise begins with this version"
    )


def test_no_promise_is_broken() -> None:
    for line in STORED.read_text().splitlines():
        hook, kind, since, *arguments = line.split()
        assert hook in SPECS, f"{hook} was promised since {since}"
        _, now_kind, now_since, *now = promise(hook).split()
        assert (now_kind, now_since) == (kind, since), hook
        assert set(arguments) <= set(now), f"an argument of {hook} is gone"
