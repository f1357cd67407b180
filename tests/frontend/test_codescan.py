"""What the static scan says about a file, without running it."""

from pathlib import Path

import pytest

from pegboard_plugins.shared.frontend.codescan import CodeFinding, scan

ENVIRON = "uses os.environ: changes or reads the environment"


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import subprocess as sp\nsp.run(['ls'])", "calls subprocess.run: runs a process"),
        ("from subprocess import Popen\nPopen('ls')", "calls subprocess.Popen: runs a process"),
        ("import os\nos.execvp('a', [])", "calls os.execvp: runs a process"),
        ("import os\nos.remove('a')", "calls os.remove: deletes files"),
        ("import os\nos.getenv('KEY')", "calls os.getenv: reads the environment"),
        ("import socket\nsocket.socket()", "calls socket.socket: uses the network"),
        (
            "from urllib import request\nrequest.urlopen('x')",
            "calls urllib.request.urlopen: uses the network",
        ),
        ("import pickle\npickle.loads(b'')", "calls pickle.loads: runs code from data"),
        ("eval('1')", "calls eval: runs code from text"),
        ("open('a', 'w')", "calls open: changes files"),
        ("open('a', mode=m)", "calls open: changes files"),
        ("Path('a').open('a')", "calls Path().open: changes files"),
        ("Path('a').write_text('x')", "calls Path().write_text: changes files"),
        ("x = getattr(os, 'sys' + 'tem')", "calls getattr: looks up a computed name"),
        ("[f][0].unlink()", "calls ….unlink: deletes files"),
        ("import os\nx = os.environ['KEY']", ENVIRON),
        ("from os import environ as e\nx = {**e}", ENVIRON),
        ("import os\nlist(map(os.remove, x))", "uses os.remove: deletes files"),
        ("import subprocess\nrun = subprocess.run", "uses subprocess.run: runs a process"),
        ("import builtins\nbuiltins.exec('x')", "calls exec: runs code from text"),
        ("from builtins import exec as e\nx = e", "uses exec: runs code from text"),
        ("list(map(eval, x))", "uses eval: runs code from text"),
        ("import sys\nsys.path.append('.')", "calls sys.path.append: imports from another folder"),
        ("import sys\nsys.path[:0] = ['.']", "uses sys.path: imports from another folder"),
        ("import sys\nsys.modules['json'] = x", "uses sys.modules: changes what is imported"),
    ],
)
def test_what_a_call_does_is_said(source: str, what: str) -> None:
    line = len(source.splitlines())

    assert scan(source.encode()).findings == (CodeFinding(line, what),)


@pytest.mark.parametrize(
    "source",
    [
        *("open('a')", "open('a', 'rb')", "getattr(x, 'y')", "socket = x\nsocket.y"),
        *("import os\nos.path", "import sys\nsys.pathways, sys.version"),
    ],
)
def test_harmless_calls_are_left_out(source: str) -> None:
    assert scan(source.encode()).findings == ()


def test_imports_are_listed_once_and_sorted() -> None:
    report = scan(b"import os.path\nfrom a.b import c\nimport os.path\nfrom . import d")

    assert report.imports == ("a.b", "os.path")


def test_a_file_that_is_no_python_says_so_and_nothing_runs(tmp_path: Path) -> None:
    trap = tmp_path / "ran"

    assert (
        scan(b"import os\n\ndef broken(:").error == "SyntaxError: invalid syntax, line 3, column 12"
    )
    scan(f"open({str(trap)!r}, 'w')".encode())

    assert not trap.exists()
