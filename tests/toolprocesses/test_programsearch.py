"""A program of the project runs if all of it that we can see was trusted."""

import os
import sys
from pathlib import Path

from pegboard.unstable import ProgramSearch
from support.plugins.own_programs import program


def search(project: Path, **facts: object) -> ProgramSearch:
    known = {"root": project, "directory": project, "trusted_by_user": True, "env": os.environ}
    return ProgramSearch(**{**known, **facts})  # type: ignore[arg-type]  # as in the class


def test_what_changes_a_program_takes_its_word_back(project: Path) -> None:
    python = project / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    black = program(project / ".venv/bin/black", f"#!{python}\n")
    digests = search(project).digests(str(black))
    allowed = search(project, allowed=digests)

    assert sorted(digests) == [".venv/bin/black", ".venv/bin/python"]
    assert allowed.find([str(black)]).path == str(black)

    python.unlink()
    program(python, "#!/bin/sh\n")
    refused = allowed.find([str(black)])
    assert refused.path is None
    assert refused.refused.startswith(".venv/bin/python has changed since it was trusted;")


def test_a_program_outside_that_runs_one_of_the_project_is_trusted_too(
    project: Path, tmp_path: Path
) -> None:
    program(project / "bin/node")
    outside = program(tmp_path / "prettier", "#!/usr/bin/env -S node --x\n")
    env = {"PATH": f"{project}/bin:/usr/bin:/bin"}

    found = search(project, env=env).find([str(outside)])

    assert found.path is None
    assert found.refused.startswith("bin/node is a program of the project that nobody has")


def test_a_link_out_of_the_project_says_where_it_leads(project: Path) -> None:
    link = project / "bin/fmt"
    link.symlink_to("/bin/true")
    allowed = search(project, allowed=search(project).digests(str(link)))
    assert allowed.find([str(link)]).path == str(link)

    link.unlink()
    link.symlink_to("/bin/sh")
    assert allowed.find([str(link)]).path is None
