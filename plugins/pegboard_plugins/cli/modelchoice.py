"""The choice of a model by the user if no model is set, and the check of a model's variant."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pegboard import InvalidInputError
from pegboard.errors import ModelNotFoundError
from pegboard.plugins import nearest_names
from pegboard.schema.message import Prompt
from pegboard.schema.session import Session
from pegboard_plugins.cli.firstrun import DEMO, first_lines
from pegboard_plugins.cli.picking import can_pick, pick
from pegboard_plugins.cli.render import Line
from pegboard_plugins.shared.frontend import newest_first

if TYPE_CHECKING:
    from pegboard_plugins.cli.message import PromptRequest
    from pegboard_plugins.shared.frontend import Feed


async def with_model(
    feed: "Feed", request: "PromptRequest", session: Session | None, note: Callable[[Line], None]
) -> Prompt:
    """Return the prompt with the model that the user picks.

    If a model is already set, or the user cannot pick one, the prompt stays unchanged. If no
    provider offers a model, `note` is called with lines on how to set up a provider.

    :raises click.Abort: when the user cancels.
    """
    prompt = request.prompt
    if await _model_name(feed, request, session):
        return prompt
    models = {
        f"{each.provider_id}/{each.id}": each.name if each.name != each.id else ""
        for each in await feed.models()
        if each.capabilities.toolcall
    }
    models.pop(DEMO, None)
    if not models:
        for line in first_lines(await feed.model_sources()):
            note(line)
    if not models or not can_pick():
        return prompt
    model = pick("model", sorted(models.items(), key=lambda row: newest_first(row[0])))
    note(Line(text=f"`pegboard config set model {model}` keeps this choice", style="dim"))
    return replace(prompt, model=model)


async def _model_name(feed: "Feed", request: "PromptRequest", session: Session | None) -> str:
    """Return the model that would answer, as `provider/model`, or "" if no model is set.

    It is the model of the command, the prompt, the agent, the session, or the default one.
    """
    found = (each for each in await feed.commands() if each.name == request.command)
    command = next(found, None)
    if model := (command and command.model) or request.prompt.model:
        return model
    named = (command and command.agent) or request.prompt.agent or (session and session.agent)
    named = named or feed.facts.agent
    choices = [each.model for each in await feed.agents() if each.name == named and each.model]
    if choices:
        return f"{choices[0].provider_id}/{choices[0].model_id}"
    if session is not None and session.model is not None:
        return f"{session.model.provider_id}/{session.model.id}"
    return feed.facts.model


async def check_variant(
    feed: "Feed", variant: str, request: "PromptRequest", session: Session | None
) -> None:
    """Check that the model has the variant.

    :raises InvalidInputError: when the model lacks the variant, with the nearest ones.
    """
    name = await _model_name(feed, request, session)
    model = await feed.require_model(name)
    if model is None:
        raise ModelNotFoundError(name)
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
