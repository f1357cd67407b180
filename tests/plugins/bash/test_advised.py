"""What is said to allow a line does so: for the lines of the corpora, under twelve kinds of rules.

Each line is tried under two of them, with PEGBOARD_FUZZ set under all.
"""

import os
from pathlib import Path

import pytest

from pegboard import App, AppOptions
from pegboard_plugins.shared.frontend import explain
from plugins.bash.made_lines import LINES

RULE_SETS = {
    "the defaults": {},
    "all is asked": {"bash": "ask"},
    "an allow-list": {"bash": {"*": "ask", "git *": "allow", "ls *": "allow"}},
    "a deny-list": {"bash": {"*": "allow", "rm *": "deny", "curl *": "deny"}},
    "an ask-list": {"bash": {"*": "allow", "git *": "ask", "rm *": "ask"}},
    "everything": "allow",
    "everything, but bash": {"*": "allow", "bash": "ask"},
    "everything, with a denial": {"*": "allow", "bash": {"*": "allow", "sh *": "deny"}},
    "what is unclear is allowed": {"bash": {"unclear": "allow", "*": "ask"}},
    "what is unclear is denied": {"bash": {"unclear": "deny", "*": "allow"}},
    "edits are asked": {"edit": "ask", "external_directory": "ask"},
    "nothing outside": {"external_directory": "deny", "bash": {"*": "ask", "cat *": "allow"}},
}
STEP = 1 if "PEGBOARD_FUZZ" in os.environ else 6
ALONE = 50
"""Of so many lines one is tried with its own advice alone; the others with that of all lines."""
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def project(tmp_path, monkeypatch):
    home = tmp_path / "home"
    folder = home / "project"
    for name in ("src/a.py", "README.md", ".env", ".git/HEAD"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("ref: refs/heads/main\n")
    monkeypatch.setenv("HOME", str(home))
    return folder


async def explained(project: Path, permission, lines):
    """The action for each line, with the rules that would allow it."""
    root = project.parent.parent
    options = AppOptions(
        installed=False,
        config={"permission": permission},
        env={"HOME": str(project.parent)},
        data_dir=root / "data",
        config_dir=root / "config",
        state_dir=root / "state",
        cache_dir=root / "cache",
    )
    found = {}
    async with App.open(project, options) as app:
        for line in lines:
            said = await explain(app, "bash", {"command": line})
            found[line] = (said.verdict.action, said.to_allow)
    return found


def followed(permission, rules):
    """The user's rules with those that were advised behind them."""
    table = {"*": permission} if isinstance(permission, str) else dict(permission)
    for rule in rules:
        own = table.pop(rule.permission, {})
        own = {"*": own} if isinstance(own, str) else own
        table[rule.permission] = {**own, rule.pattern: rule.action}
    return table


@pytest.mark.parametrize("number", range(len(RULE_SETS)), ids=RULE_SETS.keys())
async def test_advice_that_is_followed_allows_the_line(project, number):
    permission = list(RULE_SETS.values())[number]
    every_line = LINES[number % STEP :: STEP]
    lines = [line for line in every_line if line.strip() and "\0" not in line]  # the others fail
    found = await explained(project, permission, lines)
    advised = {line: rules for line, (action, rules) in found.items() if rules}
    every = [rule for rules in advised.values() for rule in rules]

    after = await explained(project, followed(permission, every), advised)
    alone = {
        line: (await explained(project, followed(permission, advised[line]), [line]))[line]
        for line in list(advised)[::ALONE]
    }

    assert {action for action, rules in found.values() if rules} <= {"ask"}
    assert [line for line, (action, _) in {**after, **alone}.items() if action != "allow"] == []
