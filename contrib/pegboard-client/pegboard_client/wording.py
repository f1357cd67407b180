"""What a caller says, in the protocol's words."""

from collections.abc import Sequence

from pegboard import InvalidInputError
from pegboard.schema.part import ModelChoice, PartInput, TextInput


def model_choice(name: str) -> ModelChoice:
    """The model with the name `provider/model`.

    :raises InvalidInputError: for a name without a provider.
    """
    provider_id, _, model_id = name.partition("/")
    if not provider_id or not model_id:
        raise InvalidInputError(f"not the name of a model: {name[:200]!r}; provider/model is")
    return ModelChoice(provider_id=provider_id, model_id=model_id)


def chosen(name: str | None) -> ModelChoice | None:
    """The model with this name, if there is one."""
    return None if name is None else model_choice(name)


def parts_of(said: str | Sequence[PartInput]) -> tuple[PartInput, ...]:
    """The parts of a prompt: a text is one."""
    return (TextInput(text=said),) if isinstance(said, str) else tuple(said)
