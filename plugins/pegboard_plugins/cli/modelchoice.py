"""The choice of a prompt's model if none is set, and the check of a variant."""

from collections.abc import Callable

from msgspec.structs import replace

from pegboard import InvalidInputError
from pegboard.plugins import nearest_names
from pegboard.schema.session import Session
from pegboard_plugins.cli.backend import Backend, PromptRequest
from pegboard_plugins.cli.firstrun import DEMO, first_lines
from pegboard_plugins.cli.picking import can_pick, pick
from pegboard_plugins.cli.render import Line
from pegboard_plugins.shared.frontend import newest_first


async def with_model(
    backend: Backend, prompt: PromptRequest, session: Session | None, note: Callable[[Line], None]
) -> PromptRequest:
    """Return the prompt with the chosen model; unchanged if it names one or there is none.

    If there are only the demonstration's models, `note` gets the page of the first run.

    :raises click.Abort: when the user leaves.
    """
    command = (await backend.commands()).get(prompt.command.name) if prompt.command else None
    chosen = (command and command.model) or prompt.model
    agent = (command and command.agent) or prompt.agent
    if await backend.model_id(chosen or prompt.model, agent or prompt.agent, session):
        return prompt
    models = {
        f"{each.provider_id}/{each.id}": each.name if each.name != each.id else ""
        for each in await backend.models()
        if each.capabilities.toolcall
    }
    models.pop(DEMO, None)
    if not models:
        for line in first_lines(await backend.list_sources()):
            note(line)
    if not models or not can_pick():
        return prompt
    model = pick("model", sorted(models.items(), key=lambda row: newest_first(row[0])))
    note(Line(text=f"`pegboard config set model {model}` keeps this choice", style="dim"))
    return replace(prompt, model=model)


async def check_variant(
    backend: Backend, variant: str, prompt: PromptRequest, session: Session | None
) -> None:
    """Check that the model has the variant.

    :raises InvalidInputError: with the nearest ones, where it has not.
    """
    command = (await backend.commands())[prompt.command.name] if prompt.command else None
    chosen = (command and command.model) or prompt.model
    model = await backend.model(chosen, (command and command.agent) or prompt.agent, session)
    if variant in model.variants:
        return
    name = f"{model.provider_id}/{model.id}"
    near = nearest_names(variant, model.variants)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif model.variants:
        hint = f"it has {', '.join(model.variants)}"
    else:
        hint = "it has none; leave --variant out, or add some to provider.*.models.*.variants"
    raise InvalidInputError(f"{name} has no variant {variant}: {hint}")
