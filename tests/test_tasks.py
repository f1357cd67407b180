"""Each check is written once, as a task of pyproject.toml; whatever runs checks calls the tasks."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
RUN = (ROOT / ".ci" / "run").read_text()
TASKS: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
    "poe"
]["tasks"]
CALL = re.compile(r"^\.venv/bin/poe (\w+)$", re.MULTILINE)


def commands(task: str) -> list[str]:
    """What a task runs."""
    steps = TASKS[task].get("sequence", [TASKS[task]])
    return [step["cmd"] for step in steps]


def yaml_of(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def test_the_runner_has_its_tasks_with_a_line_on_each() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "poethepoet"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert list(TASKS) == ["test", "lint", "docs", "pictures", "stubs", "measures", "bench"]
    for name, task in TASKS.items():
        assert re.search(rf"^  {name} +{re.escape(task['help'])}$", done.stdout, re.MULTILINE)


def test_ci_runs_lint_and_docs_through_the_runner() -> None:
    assert CALL.findall(RUN) == ["lint", "docs"]


@pytest.mark.parametrize("task", ["lint", "docs"])
def test_ci_has_no_second_copy_of_what_a_task_runs(task: str) -> None:
    programs = {command.partition(" ")[0] for command in commands(task)}

    assert {name for name in programs if re.search(rf"^\S*\b{name}\b", RUN, re.MULTILINE)} == set()


def test_ci_runs_the_tests_by_the_readme_s_command_which_ends_with_the_task_s() -> None:
    (pattern,) = re.findall(r"grep -m 1 -E '(.+)' README\.md", RUN)
    (line,) = re.findall(pattern, (ROOT / "README.md").read_text(), re.MULTILINE)

    assert [line.rpartition(" && .venv/bin/")[2]] == commands("test")


def test_the_hooks_of_commits_run_tasks_and_fetch_nothing() -> None:
    repositories = yaml_of(".pre-commit-config.yaml")["repos"]
    hooks = [hook for each in repositories for hook in each["hooks"]]

    assert {each["repo"] for each in repositories} == {"local"}
    assert {hook["language"] for hook in hooks} == {"system"}
    assert {task for hook in hooks for task in CALL.findall(hook["entry"])} == {"lint"}
    assert all(CALL.fullmatch(hook["entry"]) for hook in hooks)


def test_the_workflow_runs_the_checks_script_and_nothing_else() -> None:
    (job,) = yaml_of(".github/workflows/ci.yml")["jobs"].values()

    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
