"""Lines made section by section of bash's manual: each may start the program that it names `pwn`.

Written by a hand that has not read the judge's own cases: what is odd in the manual stands in
`manual_forms.json`. In a command `{n}` is a name, `{c}` code and `{s}` a sum.
"""

import json
from random import Random

from support.tools.cases import DATA

FORMS = json.loads((DATA / "manual_forms.json").read_text(encoding="utf-8"))
JOINTS = ("; ", "\n", " && ", " | ", " || ", " & ")


def manual_lines(number, seed):
    """So many lines, always the same ones for a seed."""
    random = Random(seed)
    return [_made(random) for _ in range(number)]


def _made(random):
    command = _filled(random)
    if random.random() < 0.3:
        command += random.choice(JOINTS) + _filled(random)
    is_sum = "pwn" not in command or random.random() < 0.15
    return random.choice(FORMS["sum_setups" if is_sum else "setups"]) + command


def _filled(random):
    found = random.choice(FORMS["commands"])
    for sign, kind in (("{n}", "names"), ("{c}", "codes"), ("{s}", "sums")):
        found = found.replace(sign, random.choice(FORMS[kind]))
    return found
