"""Job lines: the jobs of a batch, all of which are checked before the first job starts."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Annotated, Any

import msgspec

from pegboard.errors import InvalidInputError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a job file.

    `prompt` is the prompt; alternatively, `template` is a prompt in which each `$name` is replaced
    from `vars`. `repo` is a folder or a URL that git can clone, and `commit` is the revision to
    check out; without `repo` the job works in an empty folder. Bash runs `setup` before the prompt
    and `check` after the prompt, both in the job's folder. `labels` and `meta` are copied into the
    result.
    """

    id: str
    prompt: str = ""
    template: str = ""
    vars: Mapping[str, str] = {}
    repo: str = ""
    commit: str = "HEAD"
    setup: str = ""
    check: str = ""
    labels: tuple[str, ...] = ()
    meta: Mapping[str, Any] = {}
    time_limit_s: Annotated[float, msgspec.Meta(gt=0)] | None = None

    @property
    def text(self) -> str:
        """The job's prompt, with the variables in its template replaced."""
        return self.prompt or Template(self.template).substitute(self.vars)


def read_jobs(file: Path) -> tuple[Job, ...]:
    """Return the jobs of a file with one JSON object per line.

    :raises InvalidInputError: for the first line that is not a job, with its number.
    """
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise InvalidInputError(f"cannot read {file}: {error.strerror or error}") from error
    found: dict[str, Job] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            job = msgspec.json.decode(line, type=Job)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise InvalidInputError(f"{file}, line {number}: not a job: {error}") from error
        for fault in _faults(job):
            raise InvalidInputError(f"{file}, line {number}: job {job.id!r}: {fault}")
        if job.id in found:
            raise InvalidInputError(f"{file}, line {number}: job {job.id!r} is there twice")
        found[job.id] = job
    if not found:
        raise InvalidInputError(f'{file} has no job; a line is {{"id": "a", "prompt": "Do it."}}')
    return tuple(found.values())


def _faults(job: Job) -> Iterator[str]:
    if not _ID.fullmatch(job.id):
        yield "the id is 1 to 128 letters, digits, dots, - or _, and begins with a letter or digit"
    if bool(job.prompt.strip()) == bool(job.template.strip()):
        yield "give either prompt, or template with vars"
    if job.template:
        try:
            Template(job.template).substitute(job.vars)
        except KeyError as error:
            yield f"the template's ${error.args[0]} is not in vars"
        except ValueError as error:
            yield f"template: {error}; a dollar sign is written $$"
    if job.commit != "HEAD" and not job.repo:
        yield "commit needs a repo"
    if job.commit.startswith("-") or job.repo.startswith("-"):
        yield "repo and commit do not begin with -"
