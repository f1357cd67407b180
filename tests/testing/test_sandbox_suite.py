"""The suite for sandboxes: the built-in ones pass it, and each way out is found."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from pegboard.enclosing import Enclosing
from pegboard.testing import check_sandbox
from pegboard_plugins.sandbox import Sandbox, SandboxPolicy
from pegboard_plugins.sandbox.bubblewrap import Bubblewrap
from pegboard_plugins.sandbox.landlock import Landlock


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is in no folder for temporary files, where that can be."""
    place = "/srv" if os.access("/srv", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="pegboard-test-", dir=place) as made:
        yield Path(made)


@pytest.mark.parametrize("level", ["workspace", "strict"])
@pytest.mark.parametrize("sandbox", [Bubblewrap(), Landlock()], ids=lambda each: each.name)
async def test_a_built_in_sandbox_holds_its_policy(
    sandbox: Sandbox, level: Enclosing, folder: Path
) -> None:
    findings = await check_sandbox(sandbox, folder, level=level)

    if [each.rule for each in findings] == ["why_not"]:
        pytest.skip(findings[0].text)
    assert findings == ()


class Laxer:
    """Bubblewrap with a policy that leaves something open."""

    name = "laxer"
    caveat = ""

    def __init__(self, **open_: object) -> None:
        self._open = open_

    def why_not(self, policy: SandboxPolicy) -> str | None:
        return Bubblewrap().why_not(policy)

    @contextmanager
    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> Iterator[Sequence[str]]:
        with Bubblewrap().enclose(argv, cwd, replace(policy, **self._open)) as command:
            yield command


class Changing(Laxer):
    """Another command line than was asked for."""

    def __init__(self, *before: str) -> None:
        super().__init__()
        self._before = before

    @contextmanager
    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> Iterator[Sequence[str]]:
        with super().enclose((*self._before, *argv), cwd, policy) as command:
            yield command


class NoWall(Laxer):
    """No sandbox at all."""

    def why_not(self, policy: SandboxPolicy) -> str | None:
        return None

    @contextmanager
    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> Iterator[Sequence[str]]:
        yield argv


@pytest.mark.parametrize(
    ("sandbox", "rules"),
    [
        (Laxer(protected=()), {"protected"}),
        (Laxer(hidden=()), {"hidden"}),
        (Laxer(visible=()), {"hidden"}),
        (Laxer(network=True), {"network"}),
        (Changing("/usr/bin/env", "-C", "/"), {"runs", "worktree", "protected"}),
    ],
    ids=["protected", "hidden", "visible", "network", "folder"],
)
async def test_a_fault_of_a_sandbox_is_found(sandbox: Laxer, rules: set[str], folder: Path) -> None:
    findings = await check_sandbox(sandbox, folder)

    if [each.rule for each in findings] == ["why_not"]:
        pytest.skip(findings[0].text)
    assert {each.rule for each in findings} & rules


async def test_no_wall_is_found_by_every_rule_about_walls(folder: Path) -> None:
    findings = await check_sandbox(NoWall(), folder)

    walls = {"outside", "protected", "hidden", "network", "sockets", "processes"}
    assert {each.rule for each in findings} == walls


async def test_what_cannot_be_held_here_is_said(folder: Path) -> None:
    class Nowhere(NoWall):
        def why_not(self, policy: SandboxPolicy) -> str:
            return "not on this machine"

    (finding,) = await check_sandbox(Nowhere(), folder)

    assert (finding.rule, finding.text) == ("why_not", "not on this machine")
