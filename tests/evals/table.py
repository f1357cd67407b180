"""The figures of many runs as a table, a row for each model and variant."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import median

from evals.play import Figures

HEAD = (
    *("model", "variant", "success", "steps", "in", "out", "cached"),
    *("cost $", "seconds", "failed calls"),
)


def table(runs: Iterable[Figures]) -> str:
    """Successes of all runs, medians of steps, tokens and seconds, the sum of the cost, and the
    share of calls that failed.
    """
    ordered = sorted(runs, key=_whose)
    rows = [_row(list(group)) for _, group in groupby(ordered, key=_whose)]
    return aligned([HEAD, *rows])


def failures(runs: Iterable[Figures]) -> str:
    """A line for each run that failed, with the reasons."""
    failed = [each for each in runs if not each.success]
    return "".join(
        f"{each.variant}: {each.case}: {'; '.join(each.reasons)}\n"
        for each in sorted(failed, key=_whose)
    )


def differences(runs: Iterable[Figures]) -> str:
    """A line for each case that one model or variant does more often than another."""
    by_case = defaultdict[str, list[Figures]](list)
    for each in sorted(runs, key=_whose):
        by_case[each.case].append(each)
    found = {case: _shares(group) for case, group in sorted(by_case.items())}
    differing = {case: shares for case, shares in found.items() if len(set(shares.values())) > 1}
    return "".join(
        f"{case}: {', '.join(f'{whose} {share}' for whose, share in shares.items())}\n"
        for case, shares in differing.items()
    )


def _shares(runs: Iterable[Figures]) -> dict[str, str]:
    """Successes of one case by model and variant, such as `p/m brief` to `2/3`."""
    return {" ".join(whose): _successes(list(group)) for whose, group in groupby(runs, key=_whose)}


def _successes(runs: Sequence[Figures]) -> str:
    return f"{sum(each.success for each in runs)}/{len(runs)}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The rows as lines, with columns of even width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in padded)


def _whose(each: Figures) -> tuple[str, str]:
    return each.model, each.variant


def _row(runs: Sequence[Figures]) -> tuple[str, ...]:
    uses = [use for each in runs for use in each.tools.values()]
    calls, failed = sum(use.calls for use in uses), sum(use.failures for use in uses)
    return (
        runs[0].model,
        runs[0].variant,
        _successes(runs),
        f"{median(each.steps for each in runs):g}",
        f"{median(each.tokens_in for each in runs):.0f}",
        f"{median(each.tokens_out for each in runs):.0f}",
        f"{median(each.tokens_cached for each in runs):.0f}",
        f"{sum(each.cost for each in runs):.4f}",
        f"{median(each.seconds for each in runs):.1f}",
        f"{failed}/{calls}",
    )
