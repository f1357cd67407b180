"""The hook between a provider and whoever asks it; `hookspecs` has it."""

from collections.abc import Mapping

from pegboard.contract.marks import hookspec as _hookspec
from pegboard.contract.providers import Keys, Provider
from pegboard.errors import InvalidInputError
from pegboard.schema.config import Config
from pegboard.workspace import Workspace


@_hookspec("fold", subject="providers", raises=(InvalidInputError,))
def wrap_providers(
    providers: Mapping[str, Provider], config: Config, keys: Keys, workspace: Workspace
) -> Mapping[str, Provider] | None:
    """The providers by id, each as it shall be asked: to record, replay or watch their answers.

    Called once when the App opens, after `register_providers` and without the providers that the
    user has switched off. `InvalidInputError` ends the opening with its text. Fold: a plugin that
    raises another error is reported and skipped.

    - keys: what of a request or an answer must not be stored is in `keys.values()`.
    - workspace: the directory that the App is of.

    Since 0.1.
    """
