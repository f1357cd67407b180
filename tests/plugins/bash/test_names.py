"""Names in sums, and names that are given values: what each may come to, with bash as the judge."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pegboard_plugins.bash.scan import StartPlace, scan

ENV = {"USER": "root", "LOGNAME": "root", "TERM": "xterm", "WIDTH": "80"}
HIDDEN = "'a[$(touch x)]'"


def code(line, env=ENV):
    """Why a line is unclear; empty for one that is known."""
    place = StartPlace(cwd=Path("/w"), home=Path("/h"), worktree=Path("/w"), environment=env)
    found = scan(line, place)
    return found.unclear.code if found.unclear else ""


def given_by_bash():
    """The variables, with their values, of a bash that is given none."""
    done = subprocess.run(
        [
            *(shutil.which("bash") or "bash", "-p", "-c"),
            'for each in $(compgen -v); do printf "%s=%s\\0" "$each" "${!each}"; done',
        ],
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_a_variable_that_bash_sets_to_a_text_is_not_calculated():
    names = [
        name for name, value in given_by_bash().items() if not re.fullmatch(r"-?\d*", value.strip())
    ]

    assert {"OSTYPE", "MACHTYPE", "HOSTTYPE", "TERM"} <= set(names)
    for env in ({}, ENV):
        assert [name for name in names if not code(f"ls $(({name}))", env)] == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("for gnu in *; do ls $((OSTYPE)); done", "calculation"),
        ("[[ $USER -eq 1 ]]", "calculation"),
        ("[[ LOGNAME -eq 1 ]]", "calculation"),
        ("(( TERM > 1 ))", "calculation"),
        ("let x=USER", "calculation"),
        ("for ((i=0; i<USER; i++)); do ls; done", "calculation"),
        ("TERM=1; ((TERM))", "calculation"),
        ("echo TERM; ((OSTYPE=1)); ((OSTYPE))", "calculation"),
        (f"y={HIDDEN}; [[ ${{x:-y}} -eq 0 ]]", "calculation"),
        (f"y={HIDDEN}; x=1; [[ ${{x/1/y}} -eq 0 ]]", "calculation"),
        (f"xy={HIDDEN}; [[ x'y' -eq 0 ]]", "calculation"),
        (f"x1={HIDDEN}; y=1; [[ x$y -eq 0 ]]", "calculation"),
        ("(( WIDTH > 79 ))", ""),
        ("(( UNSET + 1 ))", ""),
        ("i=0; while [[ $i -lt 9 ]]; do i=$((i + 1)); done", ""),
        ("x=abc; [[ ${#x} -eq 3 && ${y:-0} -eq 0 && $# -eq 0 ]]", ""),
    ],
)
def test_a_name_in_a_sum_is_a_number_only_if_every_value_is(line, why):
    assert code(line) == why


@pytest.mark.parametrize("builtin", ["declare", "export", "local", "readonly", "typeset"])
@pytest.mark.parametrize(
    "word",
    [
        *('x"y"=1', "x\\y=1", "x{y,z}=1", "x'y'", "a'=([0]=1)'", 'P"AT"H=bin', "P{A,B}TH=bin"),
        *("L'D'_PRELOAD=x", "''x=1", "x$y=1", "x$(y)=1"),
    ],
)
def test_a_name_that_is_put_together_is_unclear(builtin, word):
    assert code(f"{builtin} {word}") == "name"


@pytest.mark.parametrize(
    "line",
    [
        *('read P"AT"H', "mapfile L'D'_X", "printf -v P\\ATH x", "getopts a P'AT'H"),
        *("unset P'AT'H", "env P'AT'H=x ls", "sudo L\\D_X=x ls", "read -a P'AT'H"),
    ],
)
def test_a_name_in_quotes_is_the_name_without_them(line):
    assert code(line) in ("env-hijack", "name")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x='1 PATH=bin'; export a=$x", ""),
        ("x='1 PATH=bin'; export 'a='$x", "name"),
        ("x='1 PATH=bin'; 'export' a=$x", "name"),
        ("x='1 PATH=bin'; command export a=$x", "name"),
        ("builtin declare a=$(ls)", "name"),
        ("x='1 touch y'; env a=$x ls", "wrapper-option"),
        ("sudo a=$(ls) ls", "wrapper-option"),
        ("x=1; env a=$x ls", ""),
        ('export \'a=\'"$x" b; env a="$x" ls', ""),
    ],
)
def test_a_value_that_is_split_gives_no_more_names_and_no_command(line, why):
    assert code(line) == why


@pytest.mark.parametrize("letter", ["\u00a0", "\u200d", "\u3000"])
@pytest.mark.parametrize(
    ("line", "is_known"),
    [
        ("echo 'a{0}b'", True),
        ('echo "a{0}b$HOME"', True),
        ("cat <<'E'\na{0}b\nE", True),
        ("git commit -m 'a{0}b' # a{0}b", True),
        ("echo a{0}b", False),
        ("{0}ls", False),
        ("ls{0}-la", False),
        ("sh -c 'ls{0}x'", False),
        ("x=a{0}b", False),
        ("$(ls{0}x)", False),
        ("ls >{0}x", False),
        ("f{0}() {{ ls; }}", False),
    ],
)
def test_a_blank_of_unicode_is_a_letter_in_quotes_alone(letter, line, is_known):
    assert (code(line.format(letter)) == "") is is_known
