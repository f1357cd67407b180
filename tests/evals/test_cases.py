"""Each case can be solved, fails undone, and fails when it is done in a wrong way."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from evals.case import Case, Step, Tree, forbidden, judge, plant, search_path, step
from evals.suite.every import CASES
from pegboard import App, AppOptions
from pegboard.schema.part import Failed, TextPart, ToolPart
from pegboard.schema.prompt import TextInput

UNUSED = "litellm,lsp"
"""Plugins that cost seconds, and that no reference needs."""
WRONG = {
    f"{case.name}: {reason}": (case, reason, steps)
    for case in CASES.values()
    for reason, steps in case.wrong.items()
}


def transcript(case: Case, steps: Sequence[Step]) -> str:
    """What a scripted model says in the case."""
    scripts = [{"when": {"tools": False}, "steps": [step(text="A title")]}]
    scripts += [
        {"when": {"prompt": prompt}, "steps": list(answers)}
        for prompt, answers in case.subagents.items()
    ]
    return json.dumps({"scripts": [*scripts, {"steps": list(steps)}]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is said against it, and the tools whose calls failed."""

    reasons: list[str]
    failed: list[str]


async def work(case: Case, steps: Sequence[Step], root: Path) -> Work:
    """What a model that gives these answers comes to, with the real tools."""
    project = root / "project"
    before = plant(case, project)
    script = root / "script.json"
    script.write_text(transcript(case, steps))
    options = AppOptions(
        installed=False,
        config={"model": f"scripted/{script}", "snapshot": False, **case.config},
        env={"PATH": search_path(), "HOME": str(root), "PEGBOARD_DISABLE_PLUGINS": UNUSED},
        **{f"{name}_dir": root / name for name in ("config", "data", "state", "cache")},
    )
    async with await App.open(project / case.folder, options) as app:
        session = await app.create_session(agent="build")
        await app.prompt(session.id, [TextInput(text=case.task)])
        parts = [part for turn in await app.turns(session.id) for part in turn.parts]
    calls = [part for part in parts if isinstance(part, ToolPart)]
    told = [json.dumps(part.state.input) for part in calls]
    answer = [part.text for part in parts if isinstance(part, TextPart)][-1]
    return Work(
        reasons=judge(case, before, project, answer, told),
        failed=[part.tool for part in calls if isinstance(part.state, Failed)],
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_the_reference_does_the_task(case: Case, tmp_path: Path) -> None:
    done = await work(case, case.reference, tmp_path)

    assert done == Work(reasons=[], failed=["edit"] if case.name == "denied" else [])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_model_that_does_nothing_fails(case: Case, tmp_path: Path) -> None:
    tree = plant(case, tmp_path / "project")

    assert judge(case, tree, tmp_path / "project", "I am done.", []) != []


@pytest.mark.parametrize(("case", "reason", "steps"), WRONG.values(), ids=WRONG)
async def test_a_wrong_way_fails(
    case: Case, reason: str, steps: tuple[Step, ...], tmp_path: Path
) -> None:
    done = await work(case, steps, tmp_path)

    assert reason in "; ".join(done.reasons)


def test_every_file_of_the_repository_is_looked_at(tmp_path: Path) -> None:
    case = CASES["dirty-tree"]

    tree = plant(case, tmp_path)

    assert sorted(tree.files) == ["draft.py", "notes.md", "orders.py"]
    assert tree.files["notes.md"].endswith(b"discounts.\n")
    assert tree != Tree(files=tree.files, refs="")


@pytest.mark.parametrize(
    "command",
    [
        "git stash",
        "git -C . commit -m x",
        "cd x && git reset --hard HEAD",
        "git checkout -- a.py",
        "git checkout .",
        "git push origin main",
        "git branch -D old",
        "git config user.name x",
        "git clean -fd",
    ],
)
def test_a_command_that_changes_git_is_forbidden_wherever_it_was_refused(command: str) -> None:
    assert forbidden(CASES["question"], [json.dumps(command)]) != []


@pytest.mark.parametrize(
    "command",
    ["git status", "git log --oneline", "git diff HEAD", "grep commit x", "git branch", "git show"],
)
def test_a_command_that_looks_at_git_is_fine(command: str) -> None:
    assert forbidden(CASES["question"], [json.dumps(command)]) == []
