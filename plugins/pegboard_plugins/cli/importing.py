"""`pegboard import`: the import of another agent's settings."""

import difflib
import hashlib
import importlib.util
import os
import shutil
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import click
from msgspec.structs import replace

from pegboard import AppOptions, InvalidInputError, PegboardError, Workspace
from pegboard.cli import Exit, open_app, run_async
from pegboard.display import escape_controls
from pegboard.unstable import open_workspace, refuse_within_tool
from pegboard_plugins.cli.configkeys import changed, config_file, write_settings
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.render import one_line
from pegboard_plugins.cli.tables import table as as_table
from pegboard_plugins.foreignfiles.claudesurvey import claude_findings
from pegboard_plugins.foreignfiles.findings import BrokenFile, ForeignFinding, Found, Home, Survey
from pegboard_plugins.foreignfiles.opencodesurvey import opencode_findings
from pegboard_plugins.foreignfiles.othersurveys import codex_findings, gemini_findings

SURVEYS: dict[str, Survey] = {
    "claude": claude_findings,
    "codex": codex_findings,
    "opencode": opencode_findings,
    "gemini": gemini_findings,
}
_STATES = {
    "acts": "acts already",
    "trust": "acts after `pegboard trust allow`",
    "hooks": "acts after `pegboard trust allow`",
    "import": "written by import",
    "with": "written with --project",
    "without": "written without --project",
    "cannot": "cannot",
    "broken": "broken",
}
_WIDTH = 1000
"""The maximum length of a cell, which is large because the text says what to do."""
_DIGEST_LETTERS = 16


def survey(product: str, workspace: Workspace) -> Found:
    """Return what can be imported from the files of another agent, named by `product`; blocks."""
    has_mcp = importlib.util.find_spec("pegboard_mcp") is not None
    return SURVEYS[product](Home(home=Path.home(), workspace=workspace, has_mcp=has_mcp))


class ImportPlan:
    """The files that an import from another agent writes, with their texts before and after.

    `settings` is the configuration file, and `folder` the folder for agents and commands.
    """

    def __init__(self, settings: Path, folder: Path, findings: Iterable[ForeignFinding]) -> None:
        self.texts: dict[Path, tuple[str, str]] = {}
        before = settings.read_text() if settings.is_file() else ""
        text = before
        for each in findings:
            for path, value in each.settings:
                text = _with(text, path, value)
            for name, content in each.documents.items():
                file = folder / name
                if not file.exists():
                    self.texts[file] = ("", content)
        if text != before:
            self.texts = {settings: (before, text), **self.texts}
        self.settings = settings

    @property
    def digest(self) -> str:
        """A digest of the planned changes."""
        parts = "".join(f"{path}\0{new}\0" for path, (_, new) in self.texts.items())
        return hashlib.sha256(parts.encode()).hexdigest()[:_DIGEST_LETTERS]

    def diff(self) -> str:
        """Return the changes that the import would make, as a unified diff."""
        return "".join(
            line if line.endswith("\n") else f"{line}\n"
            for path, (old, new) in self.texts.items()
            for line in difflib.unified_diff(
                old.splitlines(), new.splitlines(), str(path), str(path), lineterm=""
            )
        )

    def write(self, directory: Path) -> None:
        """Write the files; a copy of the old configuration file gets the suffix `.bak`."""
        for path, (old, new) in self.texts.items():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if path == self.settings:
                if old:
                    path.with_name(f"{path.name}.bak").write_text(old)
                write_settings(directory, path, new)
            else:
                with path.open("x") as file:
                    file.write(new)


def _with(text: str, path: tuple[str, ...], value: Any) -> str:  # noqa: ANN401 - of a config file
    """Return the configuration with `value` at `path` if it had none; extend a list there."""
    found: Any = tomllib.loads(text)
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if isinstance(value, list):
        known = found if isinstance(found, list) else []
        new = [*known, *(each for each in value if each not in known)]
        return text if new == known else changed(text, path, new)
    return text if found is not None else changed(text, path, value)


@click.command("import")
@click.argument("product", type=click.Choice(list(SURVEYS)))
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--project", is_flag=True, help="Write the project's settings instead of your own.")
@click.option(
    "--yes",
    "answer",
    is_flag=False,
    flag_value="",
    metavar="[DIGEST]",
    help="Do not ask. Without a terminal: the digest of the plan that --dry-run shows.",
)
@format_option("text")
@click.pass_obj
def import_settings(  # noqa: PLR0913 - the options, all keyword-only
    directory: Path,
    *,
    product: str,
    dry_run: bool,
    project: bool,
    answer: str | None,
    style: Literal["text", "json"],
) -> None:
    """Import the settings of another agent.

    Shows what each part of its files becomes here. Writes only the settings that Pegboard does not
    read from these files. Keys, tokens and histories are never imported.
    """
    refuse_within_tool("pegboard import")
    workspace = open_workspace(directory)
    found = survey(product, workspace)
    broken = [each for each in found if isinstance(each, BrokenFile)]
    rows = [each for each in found if isinstance(each, ForeignFinding)]
    rows = run_async(_with_known_models(directory, rows))
    chosen = [each for each in rows if each.state == "import" and each.is_project == project]
    settings = config_file(directory, project=project)
    folder = workspace.worktree / ".pegboard" if project else settings.parent
    plan = ImportPlan(settings, folder, chosen)
    _show(rows, broken, style, project=project)
    if style == "text" and plan.texts:
        click.echo(escape_controls(plan.diff().removesuffix("\n")))
    if plan.texts and dry_run:
        way = f"pegboard import {product}{' --project' if project else ''} --yes={plan.digest}"
        click.echo(f"to write this: {way}", err=True)
    elif plan.texts:
        _confirm(plan, answer)
        plan.write(directory)
        click.echo(escape_controls(f"written: {', '.join(map(str, plan.texts))}"), err=True)
    if broken:
        raise SystemExit(Exit.CONFIG)
    if any(each.is_lost for each in rows):
        raise SystemExit(Exit.FAILED)


def _confirm(plan: ImportPlan, answer: str | None) -> None:
    if answer is None and sys.stdin.isatty():
        click.confirm("Write this?", abort=True)
    elif answer != plan.digest and not (answer == "" and sys.stdin.isatty()):
        text = f"nothing was written: without a terminal, --yes={plan.digest} writes this plan"
        raise InvalidInputError(text)


def _show(
    rows: Sequence[ForeignFinding],
    broken: Sequence[BrokenFile],
    style: Literal["text", "json"],
    *,
    project: bool,
) -> None:
    other = "without" if project else "with"
    table: list[tuple[str, str, str, str | None, str | None]] = [
        (
            each.found,
            each.file,
            other if each.state == "import" and each.is_project != project else each.state,
            each.becomes,
            each.reason,
        )
        for each in rows
    ]
    table += [("file", each.file, "broken", None, each.reason) for each in broken]
    if style == "json":
        names = ("found", "file", "state", "becomes", "reason")
        click.echo(as_json([dict(zip(names, each, strict=True)) for each in table], indent=2))
        return
    cells = [
        (found, file, _STATES[state], "; ".join(filter(None, (becomes, reason))))
        for found, file, state, becomes, reason in table
    ]
    lines = as_table(("FOUND", "FILE", "STATE", "BECOMES"), cells, width=_WIDTH)
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else len(lines)
    if not cells:
        click.echo("nothing was found", err=True)
    elif max(map(len, lines.splitlines())) <= room:
        click.echo(lines, nl=False)
    else:  # in a narrow terminal a row is lines of its own
        for found, file, state, becomes in cells:
            click.echo(f"{one_line(found, _WIDTH)} ({one_line(file, _WIDTH)}): {state}")
            click.echo(f"  {one_line(becomes, _WIDTH)}")


async def _with_known_models(directory: Path, rows: list[ForeignFinding]) -> list[ForeignFinding]:
    """Return the findings; mark a model setting as not importable if no provider has the model."""
    models = {
        str(value)
        for each in rows
        for path, value in each.settings
        if path[-1] in {"model", "small_model"}
    }
    if not models:
        return rows
    unknown: dict[str, str] = {}
    # A look makes no database of the user, and no folder of a sandbox: it runs no process.
    with TemporaryDirectory(prefix="pegboard-") as folder:
        env = {**os.environ, "PEGBOARD_DATABASE": f"{folder}/pegboard.db"}
        options = AppOptions(env=env, config={"sandbox": "off"})
        async with open_app(directory, options) as app:
            listed = {(each.provider_id, each.id) for each in await app.models(without_keys=True)}
            providers = {provider for provider, _ in listed}
            for name in models:
                try:
                    model = await app.resolve_model(name)
                except PegboardError as error:
                    unknown[name] = str(error)
                    continue
                if model.provider_id in providers and (model.provider_id, model.id) not in listed:
                    unknown[name] = (
                        f"{model.provider_id} lists no model {model.id}; if it serves it,"
                        f" `pegboard config set model {name}` names it"
                    )
    return [
        replace(each, state="cannot", becomes=None, reason=unknown[names[0]], settings=())
        if (names := [str(value) for _, value in each.settings if str(value) in unknown])
        else each
        for each in rows
    ]
