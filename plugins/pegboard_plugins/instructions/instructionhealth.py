"""The warnings about imports that exceed the size limit of instruction files."""

from collections.abc import Iterator
from pathlib import Path

from pegboard import App, SessionView
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.session import Session, SessionTime
from pegboard_plugins.instructions import left_out_imports
from pegboard_plugins.instructions.imports import no_room


def instruction_health(app: App) -> Iterator[str]:
    """Yield a warning for each file with imports that exceed the size limit; blocks."""
    for file, names in left_out_imports(_view(app)).items():
        yield f"{file}: {no_room(names)}; shorten them"


def _view(app: App) -> SessionView:
    """Return a view of a session that has not begun."""
    place = app.workspace
    info = Session(
        id="ses_none",
        slug="none",
        project_id=place.project_id,
        directory=str(place.directory),
        title="",
        version="",
        time=SessionTime(created=0, updated=0),
    )
    agent = app.default_agent()
    return SessionView(
        info=info,
        directory=place.directory,
        worktree=place.worktree,
        agent=agent,
        agents=(agent,),
        model=Model(id="", provider_id="", name="", api=ModelApi(id="")),
        config=app.config,
        rulesets=(),
        trust=app.trust,
        home=Path.home(),
        places=app.places,
    )
