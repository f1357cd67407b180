"""The slash commands that come with Pegboard: `/init` and `/review`."""

from pegboard import hookimpl
from pegboard.schema.config import Command

INIT = """\
Write an AGENTS.md at the root of this repository: what a coding agent has to know to work here \
and cannot see at once from the files. If there is one, improve it and keep what is true.

Find out first, by reading what is there: the README, the build and test configuration, the \
continuous integration, the rules that other tools left (CLAUDE.md, .cursor/rules, .cursorrules, \
.github/copilot-instructions.md), and a few files of each part of the code.

Then write, in this order and without anything that is obvious or generic:
- the commands for building, checking and testing, and the one for a single test
- how the code is laid out, and where a change of each kind belongs
- the conventions that hold here: imports, types, names, errors, tests, comments
- traps: what breaks easily, what has to be done in order, what must not be touched

Every command that you name must exist; try the quick ones. At most 40 lines. Do not repeat \
what a linter enforces, and add no advice that would hold for every project.

$ARGUMENTS
"""

REVIEW = """\
Review a change to this repository. What to review: $ARGUMENTS

When nothing is named there, review what is not committed: `git status --short`, `git diff HEAD` \
and the files that are not tracked. A commit's hash means `git show` of it, a branch means the \
difference from where it left the present one, the number or address of a pull request means \
`gh pr view` and `gh pr diff`.

A diff alone does not tell whether code is right: read the whole of each function that it \
touches, its callers and its tests.

Look for, in this order:
1. what is wrong: logic, edge cases, missing checks, races, errors that are swallowed
2. what is unsafe: injection, secrets, permissions that are too wide
3. what breaks others: interfaces, formats, behaviour that somebody relies on
4. what is slow where it matters
5. what does not fit how this project does things, if that will cost somebody time

Before you report a problem, try to prove it wrong. Report only what the change brings, and name \
the input or the situation in which it shows. No praise, no matters of taste.

Change nothing. Answer with the problems, the gravest first, each with path:line, what happens, \
when, and what would mend it. When you found none, say so, and say what you could not check.
"""


@hookimpl
async def register_commands() -> tuple[Command, ...]:
    """Return `/init` for AGENTS.md, and `/review`, with which a subagent reviews a change."""
    return (
        Command(
            name="init",
            template=INIT,
            hints=("$ARGUMENTS",),
            description="Write or improve AGENTS.md",
        ),
        Command(
            name="review",
            template=REVIEW,
            hints=("$ARGUMENTS",),
            description="Review a change: what is not committed, a commit, a branch or a PR",
            subtask=True,
        ),
    )
