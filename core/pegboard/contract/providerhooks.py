"""The hooks that give providers, and stand between them and who asks; `hookspecs` has them."""

from collections.abc import Mapping, Sequence

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


@_hookspec("collect")
def register_providers(
    config: Config, env: Mapping[str, str], keys: Keys
) -> Sequence[Provider] | None:
    """The plugin's providers of models.

    Called once when the App opens, before any model is named. `provider/model` then asks the
    provider with that id. Collect: a plugin that raises is reported and left out; of two
    providers with one id the later replaces the earlier.

    - config: the merged configuration, with the user's `provider` table.
    - env: the App's environment, with proxies and addresses; it may not be the process's own.
    - keys: where a provider gets its key, when it is asked and not before.

    Since 0.1.
    """
