"""The names of a ring are written once: type checkers read what its table says."""

import zipfile
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

from contract.stubs import ROOT, rings, stub


@pytest.mark.parametrize("ring", list(rings()), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_stub_says_what_the_table_says(ring: Path) -> None:
    assert ring.with_suffix(".pyi").read_text() == stub(ring), "write it with `poe stubs`"


def test_every_name_can_be_imported_from_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "pegboard.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (ROOT / "core" / "pegboard").rglob("*.py*"):
            if path.suffix in {".py", ".pyi"}:
                file.write(path, path.relative_to(ROOT / "core"))
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import pegboard;"
        "print(pegboard.__file__, pegboard.App.__name__)"
    )

    done = run([executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.split() == [f"{archive}/pegboard/__init__.py", "App"], done.stderr
