"""The findings of `pegboard doctor` about files of other agents, instructions and skills."""

from collections.abc import Iterator

from pegboard import App
from pegboard_plugins.cli.importing import SURVEYS, survey
from pegboard_plugins.cli.modelprobe import ProbeFinding
from pegboard_plugins.commandhooks.command import waiting_files
from pegboard_plugins.foreignfiles.findings import BrokenFile
from pegboard_plugins.instructions.instructionhealth import instruction_health
from pegboard_plugins.shared.frontend import check_text
from pegboard_plugins.skill.libraries import (
    canonical,
    direct_dependencies,
    library_skills,
)
from pegboard_plugins.skill.skillhealth import skill_health

_NAMED = 3


def foreign_health(app: App, *, all_libraries: bool) -> tuple[ProbeFinding, ...]:
    """Return findings about files of other agents, instructions and skills; blocks."""
    found = [each for product in SURVEYS for each in _list_losses(app, product)]
    command = "hooks trust" if app.trust.trusted_by_user else "trust allow"
    for path in waiting_files(app):
        text = f"hooks of {path} do not run: `pegboard {command}` shows and trusts them"
        found.append(ProbeFinding(what="hooks", state="warns", text=text))
    found += _libraries(app) if all_libraries else _lost_skills(app)
    kinds = {"skill": skill_health(app), "instructions": instruction_health(app)}
    for kind, texts in kinds.items():
        found += (ProbeFinding(what=kind, state="warns", text=text) for text in texts)
    return tuple(found)


def _list_losses(app: App, product: str) -> Iterator[ProbeFinding]:
    """Yield findings about another agent's settings that are ignored or read differently."""
    found = survey(product, app.workspace)
    names = [each.found for each in found if not isinstance(each, BrokenFile) and each.is_lost]
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        way = f"`pegboard import {product} --dry-run` shows why"
        text = f"without effect here: {', '.join(names[:_NAMED])}{more}; {way}"
        yield ProbeFinding(what=product, state="warns", text=text)
    for each in found:
        if isinstance(each, BrokenFile) or (
            not each.is_lost and each.reason and each.reason.startswith("`$1`")
        ):
            yield ProbeFinding(what=product, state="warns", text=f"{each.file}: {each.reason}")


def _lost_skills(app: App) -> Iterator[ProbeFinding]:
    """Yield findings about skills of direct dependencies that cannot be offered."""
    root = app.workspace.worktree
    wanted = set(direct_dependencies(root))
    for each in library_skills(root, every=True) if wanted else ():
        if each.problem and canonical(each.library.partition(" ")[0]) in wanted:
            text = f"{each.name} from library {each.library} is not offered: {each.problem}"
            yield ProbeFinding(what="skill", state="warns", text=text)


def _libraries(app: App) -> Iterator[ProbeFinding]:
    """Yield a finding for each skill of each installed library: whether agents can use it."""
    root = app.workspace.worktree
    offered = {each.path for each in library_skills(root)}
    for each in library_skills(root, every=True):
        lacking = each.problem or check_text(each.text, each.name).problem
        is_offered = each.path in offered and not lacking
        why = "offered" if is_offered else f"not offered: {lacking or 'no direct dependency'}"
        yield ProbeFinding(
            what="skill", state="ok", text=f"{each.name} from library {each.library}: {why}"
        )
