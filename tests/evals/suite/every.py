"""All cases by name."""

from evals.suite import changes, fixes, large, restraint

CASES = {case.name: case for case in (*fixes.CASES, *changes.CASES, *restraint.CASES, *large.CASES)}
