"""Whether a line may run a program: no spelling of it goes by a policy that asks so."""

from pathlib import Path

import pytest

from pegboard import hookimpl
from pegboard.permissions import may_run
from pegboard.schema.session import PermissionRequest, Verdict
from pegboard_plugins import bash, rules
from pegboard_plugins.shared.frontend import explain
from support.models.played import Played, opened

PUSHES = [
    "git push",
    "git  push --force",
    "git -C . push",
    "git -c user.name=x -C . push origin main",
    "git --git-dir=.git push",
    "git -c alias.p=push p",
    "/usr/bin/git push",
    "env A=b git push",
    "cd . && git push",
    "sh -c 'git push'",
    "git status; git --no-pager push",
    "(git push)",
    "xargs git push < /dev/null",
    "timeout 5 git push",
    "git-push",
    "/usr/lib/git-core/git-push origin main",
]
OTHERS = [
    "git status",
    "git -C . log",
    "gitpush",
    "push git",
    "echo pushed",
    "legit push",
    "legit-push",
    "git-pushed",
]


@pytest.mark.parametrize("line", PUSHES)
def test_words_are_found_in_their_order_whatever_stands_between(line: str) -> None:
    assert may_run(line, "git", "push")


@pytest.mark.parametrize("line", OTHERS)
def test_what_has_not_the_words_is_left_alone(line: str) -> None:
    assert not may_run(line, "git", "push")


def test_a_program_may_be_named_with_its_path() -> None:
    assert may_run("cd a && ./run.sh all", "./run.sh", "all")
    assert not may_run("other/run.sh all", "./run.sh", "all")


class House:
    """The policy of the page."""

    @hookimpl
    def permission_ask(self, request: PermissionRequest) -> Verdict | None:
        """No pushes."""
        pushes = any(may_run(each, "git", "push") for each in request.patterns)
        if request.permission == "bash" and pushes:
            return Verdict(action="deny", reason="Nobody pushes in this house.")
        return None


async def test_no_spelling_of_a_push_goes_by_a_policy(tmp_path: Path) -> None:
    config = {"model": "played/m", "permission": {"*": "allow"}}

    async with opened(tmp_path, Played(), rules, bash, House(), allow=False, config=config) as app:
        said = {
            line: (await explain(app, "bash", {"command": line})).verdict.action
            for line in (*PUSHES, "git status")
        }

    assert said == {**dict.fromkeys(PUSHES, "deny"), "git status": "allow"}
