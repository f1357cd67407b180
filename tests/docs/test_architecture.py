"""The page about the architecture leads to modules that exist, each question to one."""

import re

from docs.pages import ROOT

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
ROW = re.compile(r"^\| ([^|]+\?) \| `([\w/]+/)` \| `(\w+\.py)` \|$", re.MULTILINE)


def test_each_question_is_answered_by_one_module_that_exists() -> None:
    rows = ROW.findall(PAGE.read_text())

    assert len(rows) >= 10
    missing = [
        f"{folder}{file}"
        for _, folder, file in rows
        if not (ROOT / "core" / "pegboard" / folder / file).is_file()
    ]
    assert missing == []
    assert len({(folder, file) for _, folder, file in rows}) == len(rows)
