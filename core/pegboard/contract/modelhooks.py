"""The hooks for models, providers, keys, budgets, processes, files, drawn calls.

`hookspecs` has them, too.
"""

from collections.abc import Callable, Mapping, Sequence

from pegboard.contract.context import FileAccess, FileLedger, SessionView
from pegboard.contract.plugin import hookspec as _hookspec
from pegboard.contract.results import Block
from pegboard.errors import InvalidInputError
from pegboard.paths import Places
from pegboard.processes import OpenProcesses
from pegboard.providers import Keys, KeyStore, Provider
from pegboard.providers.spending import OpenBudget
from pegboard.schema.config import Config
from pegboard.schema.model import Model, ModelFacts
from pegboard.schema.part import FileInput, FilePart, TextInput, ToolPart
from pegboard.workspace import Workspace


@_hookspec("first")
def model_facts(provider: str, model: str, places: Places) -> ModelFacts | None:
    """What is known of a model: its window, its price, what it can do and how it is asked.

    Called once for each model that is named while the App is open. The answer fills in what the
    model's provider has not said, and what the configuration says of the model stands above
    it. First: a plugin that raises is reported and the next is asked.

    - provider, model: the two halves of the model's name.
    - places: the user's folders; what was fetched may be kept in `places.cache`.

    Since 0.1.
    """


@_hookspec("first")
def model_names(provider: str, places: Places) -> Sequence[str] | None:
    """The ids of a provider's models that are known, beside those that it tells itself.

    Called when models are listed. A provider that does not `resolve` one of them is believed.
    First: a plugin that raises is reported and the next is asked.

    Since 0.1.
    """


@_hookspec("first")
def model_resolve(name: str) -> Model | None:
    """The model of this name.

    Called when no provider has the id before the slash, or there is no slash: for aliases and
    for providers that serve models of any name. The model's `provider_id` must be that of a
    registered provider. First: a plugin that raises is reported and the next is asked.

    Since 0.1.
    """


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


RENDERED_WITHIN_S = 0.5
"""Ten times what a function may take: a busy machine is no reason to lose a plugin's block."""


@_hookspec("first", limit_s=RENDERED_WITHIN_S)
def render_tool(part: ToolPart, width: int) -> Block | None:
    """What people see of a tool call: on a terminal, on a page, in an export.

    Called once for each state of a call that is shown and each width, by a program that shows
    it. The function is a plain one that reads nothing but its arguments and takes 50 ms at most;
    one that takes half a second is given up. First: a plugin that raises is reported and the
    next is asked. A call that no plugin draws is shown by `ToolResult.display`, or else by its
    title and output.

    - width: the columns that there are; longer lines are wrapped.

    Since 0.1.
    """


@_hookspec("first")
def register_keystore(
    env: Mapping[str, str], places: Places, workspace: Workspace
) -> KeyStore | None:
    """Where keys of providers and secrets of plugins are kept.

    Called once when the App opens, before all other hooks but `register_hooks`. The store is asked
    for what neither the settings nor the environment have. First: the newest plugin that answers
    counts, a plugin that raises is reported; without a store there is nothing but those two.

    Since 0.1.
    """


@_hookspec("first")
def register_budget() -> OpenBudget | None:
    """What keeps runs within the user's limits on money, tokens, minutes, steps and calls.

    Called once when the App opens. Without an answer nothing is limited, and no App opens for which
    the user has set limits. First: a plugin that raises is reported and the next is asked.

    Since 0.1.
    """


@_hookspec("first")
def register_processes() -> OpenProcesses | None:
    """What runs the processes of tools, and bounds and ends them.

    Called once when the App opens. Without an answer a tool that runs a program fails, and says
    what is missing. First: a plugin that raises is reported and the next is asked.

    Since 0.1.
    """


@_hookspec("first")
def register_files() -> Callable[[], FileLedger] | None:
    """What knows the files that sessions have read, and lets one call at a time write a file.

    Called once when the App opens; the answer is called with the first use of `context.files`.
    Without one a tool that uses them fails, and so does a prompt that has a file; both say what is
    missing. First: a plugin that raises is reported and the next is asked.

    Since 0.1.
    """


@_hookspec("first")
def expand_file(
    session: SessionView, file: FilePart, files: FileAccess
) -> Sequence[FileInput | TextInput] | None:
    """The parts that a file of a prompt becomes for the model, by its URL.

    Called for each file of a prompt, after the message is stored and before `chat_message`. The
    first part takes the place of the file, the others come behind all that the user has sent;
    without an answer the file stays as it is. First: a plugin that raises is reported and the next
    is asked.

    - session: its model has not been asked, and may turn out to be unknown.
    - files: `files.note_read` says that the session has seen a file.

    Since 0.1.
    """
