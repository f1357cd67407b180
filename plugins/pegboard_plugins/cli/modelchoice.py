"""The model of a prompt, which a person chooses on a terminal where nothing names one."""

from collections.abc import Callable

from msgspec.structs import replace

from pegboard.schema.session import Session
from pegboard_plugins.cli.backend import Backend, PromptRequest
from pegboard_plugins.cli.picking import can_pick, pick
from pegboard_plugins.cli.render import Line


async def with_model(
    backend: Backend, prompt: PromptRequest, session: Session | None, note: Callable[[Line], None]
) -> PromptRequest:
    """The prompt with the chosen model; as it is where one is named, or none can be chosen.

    :raises click.Abort: when the person leaves.
    """
    command = (await backend.commands()).get(prompt.command.name) if prompt.command else None
    chosen = (command and command.model) or prompt.model
    agent = (command and command.agent) or prompt.agent
    if not can_pick() or await backend.named(
        chosen or prompt.model, agent or prompt.agent, session
    ):
        return prompt
    found = {f"{each.provider_id}/{each.id}": each.name for each in await backend.models()}
    if not found:
        return prompt
    model = pick("model", sorted(found.items()))
    note(Line(text=f"`pegboard config set model {model}` keeps this choice", style="dim"))
    return replace(prompt, model=model)
