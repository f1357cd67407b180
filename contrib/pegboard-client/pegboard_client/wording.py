"""The conversion of callers' arguments into request bodies of OpenCode's protocol."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard import InvalidInputError
from pegboard.schema.message import Prompt
from pegboard.schema.part import ModelChoice
from pegboard.schema.session import Session
from pegboard_plugins.shared.frontend import PromptBody


def model_choice(name: str) -> ModelChoice:
    """Return the model with the name `provider/model`.

    :raises InvalidInputError: for a name without a provider.
    """
    provider_id, _, model_id = name.partition("/")
    if not provider_id or not model_id:
        raise InvalidInputError(f"not the name of a model: {name[:200]!r}; provider/model is")
    return ModelChoice(provider_id=provider_id, model_id=model_id)


def chosen(name: str | None) -> ModelChoice | None:
    """Return the model named `provider/model`, or None if `name` is None."""
    return None if name is None else model_choice(name)


def id_of(session: Session | str) -> str:
    """Return the id of a session that is given as an object or as an id."""
    return session if isinstance(session, str) else session.id


def prompt_body(
    prompt: str | Prompt, mentions: str | None, directory: str | None, *, checked: bool = False
) -> PromptBody:
    """Return the request body of a prompt, with the prompt's files as parts; blocks to read files.

    :raises InvalidInputError: when a file cannot be read.
    """
    if isinstance(prompt, str):
        prompt = Prompt(prompt)
    if prompt.files:
        prompt = prompt.attach(Path(directory or Path.cwd()))
    return PromptBody(
        parts=prompt.inputs,
        model=chosen(prompt.model),
        agent=prompt.agent,
        system=prompt.system,
        tools=dict(prompt.tools) if prompt.tools else None,
        variant=prompt.variant,
        message_id=prompt.message_id,
        mentions=mentions,
        checked=checked or None,
        no_reply=prompt.no_reply or None,
        format=None if prompt.output is None else _form(prompt.output),
    )


def _form(output: object) -> dict[str, Any]:
    if not isinstance(output, Mapping):
        kind = type(output).__name__
        text = f"the output of a prompt to a server is a JSON Schema, and not {kind}; give a dict"
        raise InvalidInputError(text)
    return {"type": "json_schema", "schema": dict(output)}
