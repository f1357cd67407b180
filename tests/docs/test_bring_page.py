"""The page on hooks and plugins of other agents: its files and commands are tried as they stand."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from docs.pages import ROOT, blocks
from support.plugins.hook_house import House

PAGE = ROOT / "docs" / "how-to" / "bring-hooks-and-plugins.md"
CODE = "from pegboard.cli.main import main; main()"
SKILL = "---\nname: release\ndescription: How to release\n---\nTag it.\n"
HOOKS = '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}]}}'


def _texts(language: str) -> list[str]:
    return [each.text for each in blocks(language) if each.page == PAGE]


def _write(house: House) -> None:
    """Write the files that the page has, in its order, and those that it only names."""
    settings, script = _texts("json")
    (decider,) = _texts("sh")
    rows = re.findall(r"^\| `([\w./-]+)` \| `([^`]+)` \|$", PAGE.read_text(), re.MULTILINE)
    bundle = {f"house-rules/{file}": content for file, content in rows if file[0] != "s"}
    assert len(bundle) == 2
    files = {
        ".claude/settings.json": settings,
        ".claude/hooks/no-rm.sh": decider,
        "try.json": script,
        **bundle,
        "house-rules/skills/release/SKILL.md": SKILL,
        "house-rules/hooks/hooks.json": HOOKS,
    }
    for name, content in files.items():
        path = house.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_the_page_works_as_it_stands(tmp_path: Path) -> None:
    house = House(tmp_path)
    _write(house)
    printed: dict[str, str] = {}
    for line in (line for text in _texts("console") for line in text.splitlines()):
        name, *words = shlex.split(line)
        assert name == "pegboard"
        done = subprocess.run(
            [sys.executable, "-c", CODE, *words],
            cwd=house.project,
            env=house.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, (line, done.stderr)
        name = " ".join(words[:3])
        printed[name] = printed.get(name, "") + done.stdout

    assert "not trusted" in printed["hooks list"]
    assert "It said: Use the trash, not rm -rf." in printed["run -m scripted/try.json"]
    assert "command: commands/greet.md" in printed["plugins bundle check"]
    assert "trusted house-rules" in printed["plugins bundle add"]
    assert "trusted .pegboard/bundles/house-rules" in printed["plugins bundle trust"]
    assert "removed .pegboard/bundles/house-rules" in printed["plugins bundle remove"]
    assert "house-rules 1.0.0 (trusted)" in printed["plugins bundle list"]
    assert "removed house-rules" in printed["plugins bundle remove"]
