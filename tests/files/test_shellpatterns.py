"""Shell patterns are read as bash reads them: bash itself is asked about many made-up ones."""

import os
import re
import shutil
import subprocess
from itertools import product
from random import Random

import pytest

from pegboard.unstable import shell_escape, shell_fits, shell_paths

EXAMPLES = int(os.environ.get("PEGBOARD_FUZZ", "1500"))
"""How many patterns are made up, each for 40 names."""
SEED = int(os.environ.get("PEGBOARD_FUZZ_SEED", "1"))
PIECES = (
    *("*", "*", "?", "[", "]", "[^", "[!", "[a-c]", "[!a-c]", "[^a]", "[^.]", "[[:alpha:]]", "\\"),
    *("[[:digit:]_]", "[^[:upper:]]", "[[:punct:]]", "[[:nope:]a]", "[]a]", "[!]a]", "[a-]", "-"),
    *("[z-a]", "[\\]]", "[a\\-c]", "[[.a.]]", "[[.-.]-a]", "[[=b=]c]", "[:alpha:]", "[[:word:]-z]"),
    *(
        "[[:space:]]",
        "[[:xdigit:]!]",
        "a",
        "b",
        "c",
        ".",
        ".e",
        "env",
        "A",
        "1",
        "_",
        "é",
        "^",
        "!",
    ),
    *("[[:lower:]", "[[:graph:]]", "[[:alnum:]é]", "[+--]", "\\*", "\\[", "[*?]", ":", "[^\\a]"),
)
NAMES = (
    *(
        "",
        "a",
        "b",
        "c",
        "z",
        "A",
        "Z",
        "1",
        "_",
        "-",
        ".",
        "^",
        "!",
        "[",
        "]",
        "\\",
        "*",
        "é",
        "É",
    ),
    *(
        ".env",
        "env",
        "aenv",
        ".e",
        "ab",
        "abc",
        "a.c",
        "a b",
        " ",
        "\t",
        "a\nb",
        "[a",
        "a]",
        ":",
        "ü",
    ),
    *("[:alpha:]", "-a", "a-c", "0", "~"),
)
SCRIPT = """
while IFS= read -r -d '' pattern; do
  for name; do
    case $name in $pattern) printf 1;; *) printf 0;; esac
  done
  printf '\\n'
done
"""
ENV = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def made_patterns():
    random = Random(SEED)
    made = ["".join(random.choices(PIECES, k=random.randrange(1, 6))) for _ in range(EXAMPLES)]
    pairs = map("".join, product(("[", "[^", "\\"), PIECES))
    return [each for each in (*PIECES, *pairs, *made) if not each.endswith("\\")]


def bash(script, *arguments, stdin="", cwd=None):
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-p", "-c", script, "bash", *arguments],
        input=stdin.encode(),
        capture_output=True,
        check=True,
        env=ENV,
        cwd=cwd,
    )
    return done.stdout.decode()


def test_a_pattern_fits_the_texts_that_bash_says():
    patterns = made_patterns()
    said = bash(SCRIPT, *NAMES, stdin="".join(f"{each}\0" for each in patterns)).splitlines()

    wrong = [
        (pattern, name, bit)
        for pattern, bits in zip(patterns, said, strict=True)
        for name, bit in zip(NAMES, bits, strict=True)
        if shell_fits(pattern, name) is not (bit == "1")
    ]

    assert wrong == []


def test_a_pattern_stands_for_the_files_that_bash_says(tmp_path):
    folder = tmp_path.resolve()
    for name in NAMES:
        if name not in ("", "."):
            (folder / name).touch()
    for name in ("d", ".d", "d/e", "d/.h"):
        (folder / name).mkdir()
        (folder / name / "abc").touch()
    (folder / "link").symlink_to("d")
    ends = ("", "", "", "/", "/*", "/.*", "/[^x]*")
    patterns = [
        f"{pattern}{end}" for pattern, end in zip(made_patterns(), ends * EXAMPLES, strict=False)
    ]
    script = (
        "shopt -s nullglob; IFS=; while read -r -d '' each;"
        " do printf '%s\\1' $each; printf '\\2'; done"
    )
    said = bash(script, stdin="".join(f"{each}\0" for each in patterns), cwd=folder)

    wrong = []
    for pattern, text in zip(patterns, said.split("\2")[:-1], strict=True):
        expected = sorted(
            each for each in text.split("\1") if each and os.path.lexists(f"{folder}/{each}")
        )
        found = sorted(
            each.removeprefix(f"{folder}/") for each in shell_paths(f"{folder}/{pattern}")
        )
        if re.search(r"(?<!\\)[*?\[]", pattern) and expected != found:
            wrong.append((pattern, expected, found))

    assert wrong == []


def test_two_stars_go_through_all_folders(tmp_path):
    folder = tmp_path.resolve()
    (folder / "a" / "b").mkdir(parents=True)
    (folder / ".h").mkdir()
    for name in ("x.py", "a/y.py", "a/b/z.py", ".h/w.py"):
        (folder / name).touch()
    for pattern in ("**/*.py", "**", "a/**/z.py", "**/b"):
        said = bash('shopt -s globstar; printf "%s\\n" $1', pattern, cwd=folder).split()
        found = {
            each.removeprefix(f"{folder}/")
            for each in shell_paths(f"{folder}/{pattern}", deep=True)
        }

        assert found == set(said)


@pytest.mark.parametrize("text", [*NAMES, "a*", "[x]", "\\[a\\]"])
def test_an_escaped_text_fits_itself_alone(text):
    pattern = shell_escape(text)

    assert shell_fits(pattern, text)
    assert [name for name in NAMES if shell_fits(pattern, name)] == [n for n in NAMES if n == text]


def test_many_stars_take_no_time_that_doubles():
    assert not shell_fits("*a" * 40 + "b", "a" * 400)
