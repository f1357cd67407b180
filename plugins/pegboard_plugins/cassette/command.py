"""`pegboard rerun`: send the prompts of a session again, to another model."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pegboard import InvalidInputError
from pegboard.cli import open_app, run_async
from pegboard.schema.message import AssistantMessage, Prompt, Turn, UserMessage
from pegboard.schema.part import FileInput, FilePart, PartInput, TextInput, TextPart

if TYPE_CHECKING:
    from pegboard import App


@click.command()
@click.argument("session")
@click.option("-m", "--model", metavar="PROVIDER/MODEL", required=True, help="The model to ask.")
@click.option(
    "--from",
    "first",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="The prompt to start from; earlier messages are copied.",
)
@click.pass_obj
def rerun(directory: Path, session: str, *, model: str, first: int) -> int:
    """Send the prompts of SESSION again, to another model.

    The answers go to a new session. Tools run again, on the files as they are now; what needs a
    permission is denied.
    """
    return run_async(_replay(directory, session, model, first))


async def _replay(directory: Path, session_id: str, model: str, first: int) -> int:
    from pegboard_plugins.shared.frontend import forked
    from pegboard_plugins.shared.terminal import exit_of_answer

    async with open_app(directory) as app:
        await app.resolve_model(model)  # before there is a session for it
        prompts = [turn for turn in await app.list_turns(session_id) if _is_prompt(turn)]
        if first > len(prompts):
            text = f"{session_id} has {len(prompts)} prompts, and no number {first}"
            raise InvalidInputError(text)
        begun = prompts[first - 1 :]
        copy = await forked(app, session_id, begun[0].info.id)
        click.echo(f"session {copy.id}", err=True)
        for turn in begun:
            answer = await _asked_again(app, copy.id, turn, model)
            if code := exit_of_answer(answer, denied=False):
                return int(code)
    return 0


async def _asked_again(app: "App", session_id: str, turn: Turn, model: str) -> AssistantMessage:
    from pegboard.display import escape_controls

    parts = tuple(_inputs(turn))
    texts = (part.text for part in parts if isinstance(part, TextInput))
    click.echo(escape_controls(f"> {' '.join(texts)}"), err=True)
    answer = await app.prompt(session_id, Prompt(parts=parts, agent=turn.info.agent, model=model))
    for part in answer.parts:
        if isinstance(part, TextPart) and part.text:
            click.echo(escape_controls(part.text))
    assert isinstance(answer.info, AssistantMessage)
    if answer.info.error is not None:
        click.echo(escape_controls(f"error: {answer.info.error.data.message}"), err=True)
    return answer.info


def _is_prompt(turn: Turn) -> bool:
    return isinstance(turn.info, UserMessage) and any(_inputs(turn))


def _inputs(turn: Turn) -> Iterator[PartInput]:
    """Yield the texts and files that the user sent, without the parts that the engine added."""
    for part in turn.parts:
        if isinstance(part, TextPart) and not part.synthetic:
            yield TextInput(text=part.text)
        elif isinstance(part, FilePart):
            yield FileInput(mime=part.mime, url=part.url, filename=part.filename)
