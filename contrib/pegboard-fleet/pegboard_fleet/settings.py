"""The command-line options for the settings of a batch, and the exit code for its state."""

from collections.abc import Callable, Mapping
from typing import Any, get_args

import click

from pegboard.cli import Exit
from pegboard.unstable import refuse_within_tool
from pegboard_fleet.journal import Settings, Status
from pegboard_fleet.state import BatchState
from pegboard_plugins.shared import rule_options
from pegboard_plugins.shared.frontend import RunRules

BUDGET, INFRA = 3, 4
"""Exit codes: the money is spent; a provider or the machine has failed."""
_OPTIONS = (
    click.option("-m", "--model", metavar="PROVIDER/MODEL", help="The model to ask."),
    click.option("--agent", metavar="NAME", help="The agent to ask."),
    click.option("--repeat", type=click.IntRange(1, 1000), default=1, help="Attempts at each job."),
    click.option("--budget-usd", type=click.FloatRange(0), help="What the batch may spend."),
    click.option("--job-budget-usd", type=click.FloatRange(0), help="What one attempt may spend."),
    click.option(
        "--time-limit",
        "time_limit_s",
        type=click.FloatRange(0, min_open=True),
        default=1800.0,
        show_default=True,
        metavar="SECONDS",
        help="How long the answer of one attempt may take.",
    ),
    click.option(
        "--pause",
        "pause_s",
        type=click.FloatRange(0),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How long nothing begins after a provider refused a request as one too many.",
    ),
    click.option(
        "--auto", is_flag=True, help="Allow whatever would be asked; denied stays denied."
    ),
    rule_options,
    click.option("--sandbox", metavar="LEVEL", help="How strictly to sandbox the tools."),
)


class _Statuses(click.ParamType[frozenset[Status]]):
    """The command-line type for a comma-separated list of attempt statuses."""

    name = "statuses"

    def convert(
        self,
        value: str | frozenset[Status],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> frozenset[Status]:
        """Parse the statuses; fail for a status whose attempts cannot be repeated."""
        if isinstance(value, frozenset):
            return value
        known: dict[str, Status] = {each: each for each in get_args(Status) if each != "done"}
        chosen = frozenset(filter(None, (each.strip() for each in value.split(","))))
        if unknown := chosen - known.keys():
            self.fail(
                f"{', '.join(sorted(unknown))}: choose from {', '.join(sorted(known))}", param, ctx
            )
        return frozenset(known[each] for each in chosen)


_RESUME_OPTIONS = (
    click.option("--budget-usd", type=click.FloatRange(0), help="What the batch may spend in all."),
    click.option(
        "--retry",
        type=_Statuses(),
        default="",
        metavar="STATUSES",
        help="Make ended attempts once more, such as error_infra,parked.",
    ),
)


def resume_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for continuing a batch to a command."""
    for option in reversed(_RESUME_OPTIONS):
        command = option(command)
    return command


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for a batch's settings, such as `--model`, to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_settings(command: str, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a batch from a command's options.

    :raises InvalidInputError: for an invalid permission rule, or if an agent runs the command with
        `--auto` or `--allow`.
    """
    for option in filter(given.get, ("auto", "allow")):
        refuse_within_tool(f"{command} --{option}")
    RunRules(allow=given["allow"], deny=given["deny"])  # before anything runs
    return Settings(**given)


def exit_of(state: BatchState) -> int:
    """Return the exit code of a command for a batch that has ended."""
    counts = state.counts
    if counts["stopped_budget"]:
        return BUDGET
    if counts["error_infra"] or counts["parked"]:
        return INFRA
    return Exit.FAILED if counts["failed"] or counts["timed_out"] else Exit.DONE
