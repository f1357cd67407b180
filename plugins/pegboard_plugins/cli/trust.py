"""`pegboard trust`: the projects that may run their own code."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pegboard.app import UserFolders
from pegboard.cli import Group, run_async
from pegboard.display import escape_controls
from pegboard.errors import ConfigError, TrustError
from pegboard.unstable import (
    ProgramSearch,
    TrustStore,
    counted,
    open_workspace,
    read_layer,
    redirections,
    refuse_within_tool,
    shown_before,
)
from pegboard_plugins.cli.render import Line, open_screen, whole_diff
from pegboard_plugins.cli.skippedtools import skipped_tool_files
from pegboard_plugins.cli.tables import moment, show_table
from pegboard_plugins.cli.trustlock import write_lock
from pegboard_plugins.shared.frontend import UnseenDocuments, scans_of
from pegboard_plugins.shared.terminal import question_terminal

if TYPE_CHECKING:
    from pegboard.app import Decision
    from pegboard_plugins.cli.render import OutputScreen
    from pegboard_plugins.shared.frontend import ScanReport

LOCK = Path(".pegboard/trust.lock")
_SHOWN_DIGITS = 16
"""The number of displayed digits of a digest, which users only compare."""


@click.group(cls=Group)
def trust() -> None:
    """Manage which projects may run their own code."""


@trust.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--waiting", is_flag=True, hidden=True, help="Ask about nothing but what waits.")
@click.pass_obj
def allow(directory: Path, *, yes: bool, waiting: bool) -> None:
    """Trust this project's code and command hooks as they are now.

    A changed file must be trusted again. The command first shows the imports and actions of each
    file, then the changes since it was trusted. A formatter or language server that is installed in
    the project also needs `trust program`.
    """
    from pegboard_plugins.commandhooks.command import trust_found_hooks  # 150 modules

    refuse_within_tool("pegboard trust allow")
    has_code = _allow_code(directory, yes=yes, waiting=waiting)
    has_hooks = run_async(trust_found_hooks(directory, yes=yes))
    if not (has_code or has_hooks):
        click.echo("nothing to trust here: no code waits; `pegboard trust program` is for programs")


def _allow_code(directory: Path, *, yes: bool, waiting: bool) -> bool:
    """Ask the user to trust the project's code, and store the user's decision; return True.

    With `waiting`, return False without a question if the project has no code.
    """
    places = _places()
    store = TrustStore(places.trust)
    decision = run_async(project_decision(directory, places))
    for warning in skipped_tool_files((decision.root, directory)):
        click.echo(escape_controls(f"warning: {warning}"), err=True)
    if decision.trusted_by_user:
        click.echo(escape_controls(decision.reason))
        return True
    if waiting and not decision.files:
        return False
    _show(decision, store.difference(decision))
    if not yes:
        what = "code" if decision.files else "configured programs; it brings no code"
        _confirm(f"Trust {decision.root} to run its {what}?")
    _note(places, "allow", decision.root, files=sorted(map(str, decision.files)), key=decision.key)
    store.allow(decision)
    files = counted(len(decision.files), "file") if decision.files else "it brings no code"
    click.echo(escape_controls(f"trusted: {decision.root} ({files})"))
    return True


@trust.command()
@click.argument("programs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def program(directory: Path, programs: tuple[Path, ...], *, yes: bool) -> None:
    """Trust PROGRAMS of this project as they are now.

    An example is .venv/bin/ruff. Formatters and language servers of the project run only if they
    are trusted. A changed program must be trusted again. The files that a program loads are not
    checked.
    """
    refuse_within_tool("pegboard trust program")
    places = _places()
    store = TrustStore(places.trust)
    decision = run_async(project_decision(directory, places))
    if not decision.trusted_by_user:
        raise TrustError(f"{decision.root} is not trusted; `pegboard trust allow` comes first")
    digests = _program_digests(decision, directory, programs)
    for name, digest in digests.items():
        click.echo(escape_controls(f"{name}  {digest[:_SHOWN_DIGITS]}"))
    if not yes:
        _confirm(f"Trust {decision.root} to run these programs?")
    _note(places, "program", decision.root, files=sorted(digests), programs=digests)
    store.allow_programs(decision.root, digests)
    click.echo(escape_controls(f"trusted in {decision.root}"))


@trust.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def documents(directory: Path, *, yes: bool) -> None:
    """Review the instructions and skills that an agent wrote.

    Until you accept such a file here, it does not count as instructions. A file that an agent
    changes again must be accepted again.
    """
    refuse_within_tool("pegboard trust documents")
    root, places = open_workspace(directory).worktree.resolve(), _places()
    unseen = UnseenDocuments(places.unseen_documents)
    found = dict(unseen.below(root))
    if not found:
        click.echo(escape_controls(f"no document in {root} needs your review"))
        return
    for path, content in found.items():
        click.echo(escape_controls(f"{path}\n\n{content.decode(errors='replace')}\n"))
    if not yes:
        _confirm(f"Accept what an agent wrote there as instructions in {root}?")
    _note(places, "documents", root, files=sorted(map(str, found)))
    try:
        unseen.accept(found)
    except OSError as error:
        raise TrustError(f"the record of documents cannot be written: {error}") from error
    click.echo(
        escape_controls(f"accepted: {', '.join(str(path.relative_to(root)) for path in found)}")
    )


@trust.command("list")
def list_trusted() -> None:
    """List the projects that are trusted."""
    projects = TrustStore(_places().trust).projects()
    rows = [
        (root, moment(each.allowed_at), ", ".join(sorted(each.files)))
        for root, each in projects.items()
    ]
    show_table(("project", "since", "files"), rows, none="no project is trusted yet")


@trust.command()
@click.pass_obj
def revoke(directory: Path) -> None:
    """Stop trusting this project."""
    worktree, places = open_workspace(directory).worktree, _places()
    if not TrustStore(places.trust).revoke(worktree):
        raise TrustError(f"{worktree} was not trusted; `pegboard trust list` shows what is")
    _note(places, "revoke", worktree)
    click.echo(escape_controls(f"not trusted any more: {worktree}"))


@trust.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.pass_obj
def lock(directory: Path, file: Path | None) -> None:
    """Write the digests of this project's code and hooks to FILE.

    The file is for runs without a terminal: a run trusts exactly these files if PEGBOARD_TRUST_LOCK
    names it. By default, FILE is .pegboard/trust.lock in the project.
    """
    # 150 modules that no other command of this module needs.
    from pegboard_plugins.commandhooks import FILES
    from pegboard_plugins.commandhooks.foundhooks import project_digests

    refuse_within_tool("pegboard trust lock")
    places = _places()
    decision = run_async(project_decision(directory, places))
    hooks = project_digests(FILES, open_workspace(directory), places, decision)
    target = file or decision.root / LOCK
    target.parent.mkdir(parents=True, exist_ok=True)
    write_lock(decision, target, hooks=hooks)
    count = len({*decision.digests, *hooks})
    click.echo(escape_controls(f"locked {counted(count, 'file')} in {target}"))


def _program_digests(
    decision: "Decision", directory: Path, programs: Iterable[Path]
) -> dict[str, str]:

    search = ProgramSearch(
        root=decision.root, directory=directory, trusted_by_user=True, env=os.environ
    )
    found: dict[str, str] = {}
    for path in programs:
        try:
            digests = search.digests(os.path.normpath(directory / path))  # links stay as they are
        except OSError as error:
            raise TrustError(f"{path} cannot be read: {error.strerror}") from error
        if not digests:
            raise TrustError(f"{path} is not in {decision.root}, so it needs no trust")
        found |= digests
    return found


def _note(places: "UserFolders", action: str, root: Path, **facts: object) -> None:
    """Record a decision about a project in the log of decisions."""
    from pegboard_plugins.audit.trail import Audit  # only a decision is audited

    async def note() -> None:
        audit = Audit.at(places)
        await audit.write("trust", {"action": action, "by": "user", "project": str(root), **facts})
        await audit.aclose()

    run_async(note())


async def project_decision(directory: Path, places: "UserFolders") -> "Decision":
    """Return the decision whether a project's code is trusted, without running the code."""
    from pegboard.unstable import files_to_trust, load_config  # 90 modules

    workspace = open_workspace(directory)
    loaded = await load_config(
        workspace, config_dir=places.config, env=os.environ, overrides=None, trusted=False
    )
    return TrustStore(places.trust).decide(
        directory=workspace.directory,
        worktree=workspace.worktree,
        config_files=(*loaded.untrusted, *await files_to_trust(directory)),
        plugin_paths=loaded.plugin_paths,
    )


def _places() -> "UserFolders":

    return UserFolders.of(os.environ)


def _show(decision: "Decision", difference: str) -> None:

    screen = open_screen(sys.stdout, sys.stdout, os.environ)
    scans = scans_of(decision)
    for path in decision.files:
        screen.line(Line(head=escape_controls(str(path)), text="", style="tool"))
        if path in scans:
            _show_scan(screen, scans[path])
        for text in _redirections(path, decision.files[path]):
            screen.line(Line(text=escape_controls(text), style="warning", indent=1))
    for line in whole_diff(difference):
        screen.line(line)
    screen.close()


def _redirections(path: Path, content: bytes) -> tuple[str, ...]:
    """Return lines about risks of a settings file that the user must see before trusting it.

    They name foreign addresses, models and servers. An invalid file gives no lines.
    """
    if path.suffix == ".md":
        return redirections({"its text": content.decode(errors="replace")})
    if path.suffix not in (".toml", ".json", ".jsonc"):
        return ()
    try:
        return shown_before(read_layer(path, content=content).value)
    except ConfigError:
        return ()


def _show_scan(screen: "OutputScreen", report: "ScanReport") -> None:

    if report.error:
        screen.line(Line(text=escape_controls(report.error), style="warning", indent=1))
    imports = escape_controls(", ".join(report.imports)) or "nothing"
    screen.line(Line(text=f"imports {imports}", indent=1))
    for finding in report.findings:
        text = f"line {finding.line}: {escape_controls(finding.what)}"
        screen.line(Line(text=text, style="warning", indent=1))


def _confirm(question: str) -> None:

    if not sys.stdin.isatty():
        raise TrustError("there is no terminal to ask on; review the files, then pass --yes")
    with question_terminal():
        is_trusted = click.confirm(escape_controls(question), default=False, err=True)
    if not is_trusted:
        raise TrustError("not trusted; nothing was stored")
