"""The import time of each plugin, with the module that takes this time."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LIMIT_S = 60
_MARK = "# plugin "
_LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|( +)(\S+)")
_SCRIPT = f"""
import sys
import pegboard.app.application, pegboard.contract.apphooks, pegboard.schema.event
for name in sys.argv[1:]:
    sys.stderr.write("{_MARK}" + name + "\\n")
    sys.stderr.flush()
    try:
        __import__(name)
    except BaseException:
        pass
"""


class ImportCost(NamedTuple):
    """The import time of a module that a plugin imports, including the module's own imports."""

    ms: float
    plugin: str
    module: str


def import_costs(modules: Sequence[str]) -> tuple[ImportCost, ...]:
    """Measure the import times of plugins' modules in a separate process.

    A plugin's own code counts under the plugin's module. Modules that are not imported within
    `_LIMIT_S` are left out.
    """
    if not modules:
        return ()
    try:
        heard = subprocess.run(
            [sys.executable, "-P", "-X", "importtime", "-c", _SCRIPT, *modules],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_LIMIT_S,
            check=False,
        ).stderr
    except subprocess.TimeoutExpired as error:
        heard = error.stderr or b""
    sections = heard.decode(errors="replace").split(_MARK)[1:]
    found = (cost for section in sections for cost in _costs(*section.split("\n", 1)))
    return tuple(sorted(found, reverse=True))


def _costs(plugin: str, lines: str) -> Iterator[ImportCost]:
    """Yield the import times of the plugin's modules, and of foreign modules that these import.

    `lines` is the output of `python -X importtime`, which lists a module after its own imports.
    """
    own, foreign_depth = plugin.partition(".")[0], None
    for line in reversed(lines.splitlines()):
        if (found := _LINE.match(line)) is None:
            continue
        its_us, all_us, indent, name = found.groups()
        depth = len(indent)
        if foreign_depth is not None and depth > foreign_depth:
            continue
        is_own = name.partition(".")[0] == own
        foreign_depth = None if is_own else depth
        yield ImportCost(int(its_us if is_own else all_us) / 1000, plugin, name)
