"""The errors that callers can act on.

::

    PegboardError
    ├── ConfigError              a config file or key is wrong            (exit 3)
    ├── TrustError               a project's code may not run             (exit 3)
    ├── NotFoundError            an id or name that nothing has           (exit 2)
    ├── ModelNotFoundError       no provider serves this model            (exit 4)
    ├── ProviderError            the model could not be asked             (exit 4)
    │   ├── ProviderAuthError    a key is missing or refused
    │   ├── ContextOverflowError the request is longer than the model reads
    │   └── ToolSchemaError      the provider takes a tool's schema for wrong
    ├── PermissionDeniedError    a rule, a plugin or the user said no     (exit 5)
    │   ├── PermissionRejectedError   the user said no: the turn ends
    │   ├── PermissionCorrectedError  the user said no and what to do instead
    │   └── PromptRefusedError        a plugin refuses a prompt: no model reads it
    ├── OutputError              an answer does not have its form         (exit 9)
    ├── BudgetError              a limit on money, tokens or steps is hit (exit 6)
    ├── TimeLimitError           a wait took longer than it may           (exit 7)
    ├── PluginError              a plugin cannot be loaded or called      (exit 8)
    │   ├── SignatureError       a tool's parameter cannot be described
    │   └── RequiredHookError    a hook that must not be left out has failed
    ├── InvalidInputError        input that cannot be used as given       (exit 2)
    ├── SessionBusyError         the session runs a turn already          (exit 1)
    ├── StorageError             the database cannot be used              (exit 1)
    ├── ServerError              a server refused a request               (exit as its cause)
    │   └── ServerUnreachableError    no server answers, or not any more  (exit 1)
    ├── ToolError                a tool failed; the text is for the model (exit 1)
    │   └── QuestionRejectedError the user did not answer: the turn ends
    └── AbortedError             the user stopped the turn                (exit 130)
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SHOWN_CHARACTERS = 200
"""The most characters of an unknown name that an error message repeats."""
_PASSING_STATUSES = (408, 409, 425, 429, *range(500, 600))


class PegboardError(Exception):
    """The root: its text names the subject, the value and the way out, and fits on a line.

    `told` says that a `session.error` event has reported it, as for a turn that fails.
    """

    exit_code = 1
    told = False


class ConfigError(PegboardError, ValueError):
    """A config file cannot be read, or a key in it has an invalid value."""

    exit_code = 3

    def __init__(
        self, message: str, *, file: Path | None = None, line: int | None = None, key: str = ""
    ) -> None:
        place = str(file) if file else ""
        if place and line:
            place = f"{place}:{line}"
        super().__init__(": ".join(part for part in (place, key, message) if part))
        self.file = file
        self.line = line
        self.key = key


class TrustError(PegboardError, PermissionError):
    """Code that a project brings may not run, because its owner has not said yes."""

    exit_code = 3


class NotFoundError(PegboardError, LookupError):
    """An unknown id or name; `suggestions` are the nearest that exist."""

    exit_code = 2

    def __init__(self, kind: str, name: str, *, suggestions: Sequence[str] = ()) -> None:
        hint = f". Did you mean {', '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"{kind} not found: {_beginning(name)}{hint}")
        self.kind = kind
        self.name = name
        self.suggestions = tuple(suggestions)


class ModelNotFoundError(PegboardError, LookupError):
    """No provider serves this model; `suggestions` are the nearest names."""

    exit_code = 4

    def __init__(self, name: str, *, suggestions: Sequence[str] = (), hint: str = "") -> None:
        nearest = f" Did you mean {', '.join(suggestions)}?" if suggestions else ""
        way_out = f" {hint}" if hint else " `pegboard models` lists what can be used."
        super().__init__(f"model not found: {_beginning(name)}.{nearest}{way_out}")
        self.name = name
        self.suggestions = tuple(suggestions)


class ProviderError(PegboardError):
    """The request to the model failed, or its answer broke off.

    `retryable` is the provider's own judgement, by default that of the HTTP `status`, which is None
    when there was no HTTP answer. What can be tried again is tried after `wait_s` seconds, if the
    provider asks for that. Headers and body are as received, without credentials.
    """

    exit_code = 4

    def __init__(  # noqa: PLR0913 - the facts of an HTTP failure, all keyword-only
        self,
        message: str,
        *,
        provider_id: str = "",
        status: int | None = None,
        retryable: bool | None = None,
        wait_s: float | None = None,
        headers: Mapping[str, str] | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message)
        if retryable is None:
            final = isinstance(self, ProviderAuthError | ContextOverflowError)
            retryable = status in _PASSING_STATUSES and not final
        self.provider_id = provider_id
        self.status = status
        self.retryable = retryable
        self.wait_s = wait_s
        self.headers = dict(headers or {})
        self.body = body


class ProviderAuthError(ProviderError):
    """A credential is missing or was refused; the text says which variable and where it goes."""


class ContextOverflowError(ProviderError):
    """The request is longer than the model's context window."""


class ToolSchemaError(ProviderError):
    """The provider refuses the schemas of `tools`, names of the request; `keyword` may be why."""

    def __init__(
        self,
        message: str,
        *,
        tools: Sequence[str] = (),
        keyword: str = "",
        **facts: Any,  # noqa: ANN401 - those of a `ProviderError`
    ) -> None:
        super().__init__(message, **facts)
        self.tools = tuple(tools)
        self.keyword = keyword


class PermissionDeniedError(PegboardError, PermissionError):
    """A rule or a plugin denies the request, or no user is there to answer it.

    The text is for the model; `advice` tells the user how to allow the call, if that is possible.
    """

    exit_code = 5

    def __init__(self, text: str, *, advice: str = "") -> None:
        super().__init__(text)
        self.advice = advice


class PermissionRejectedError(PermissionDeniedError):
    """The user said no: the turn ends after this step."""


class PermissionCorrectedError(PermissionDeniedError):
    """The user said no and what to do instead: the text goes back to the model."""


class PromptRefusedError(PermissionDeniedError):
    """A plugin refuses a prompt: the turn ends before a request, and no model reads the prompt."""


class OutputError(PegboardError):
    """The final answer does not have the form of `Prompt.output`, also after `retries` corrections.

    `answer` is its text.
    """

    exit_code = 9

    def __init__(self, message: str, *, answer: str = "", retries: int = 0) -> None:
        super().__init__(message)
        self.answer = answer
        self.retries = retries


class BudgetError(PegboardError):
    """A limit on money, tokens, minutes, steps or tool calls is reached."""

    exit_code = 6


class TimeLimitError(PegboardError, TimeoutError):
    """A wait took longer than its limit."""

    exit_code = 7


class PluginError(PegboardError):
    """A plugin cannot be loaded, or a hook of it returned a value that cannot be used."""

    exit_code = 8

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(f"plugin {plugin}: {message}")
        self.plugin = plugin


class SignatureError(PluginError):
    """A tool's parameter cannot be described to a model; `parameter` is "" for the tool itself."""

    def __init__(self, plugin: str, message: str, *, tool: str, parameter: str = "") -> None:
        place = f"tool {tool}, parameter {parameter}" if parameter else f"tool {tool}"
        super().__init__(plugin, f"{place}: {message}")
        self.tool = tool
        self.parameter = parameter


class RequiredHookError(PluginError):
    """A hook that its plugin marks as required has failed; the operation that called it ends."""


class InvalidInputError(PegboardError, ValueError):
    """Input that cannot be used as given; the text says what would be."""

    exit_code = 2


class SessionBusyError(PegboardError):
    """The session runs a turn already, and this act cannot wait for its end.

    `kept` says that what was sent is stored all the same, and goes with the next prompt. `owner`
    is the owner of the session's fence, None where the storage does not say.
    """

    def __init__(self, session_id: str, *, kept: bool = False, owner: str | None = None) -> None:
        end = "; what you sent is kept, and goes with the next prompt" if kept else ""
        super().__init__(
            f"session {session_id} is busy; wait for its turn to end, or abort it{end}"
        )
        self.session_id = session_id
        self.kept = kept
        self.owner = owner


class StorageError(PegboardError, OSError):
    """The database cannot be opened, read or written."""


class ServerError(PegboardError):
    """A server refused a request, or its response cannot be used.

    `status` is the HTTP status, None when there was no answer; `name` is the protocol's name of the
    error, and `data` is all that the server says about it. The exit code is that of a local run
    with this error.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        name: str = "",
        data: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.name = name
        self.data = dict(data or {})
        self.exit_code = _SERVER_EXITS.get(name, type(self).exit_code)


_SERVER_EXITS: Mapping[str, int] = {
    "BadRequest": InvalidInputError.exit_code,
    "ConfigError": ConfigError.exit_code,
    "MessageAbortedError": 130,
    "NotFoundError": NotFoundError.exit_code,
    "PluginError": PluginError.exit_code,
    "PermissionDeniedError": PermissionDeniedError.exit_code,
    "ProviderModelNotFoundError": ModelNotFoundError.exit_code,
    "UnauthorizedError": ProviderAuthError.exit_code,
}


class ServerUnreachableError(ServerError, ConnectionError):
    """No server answers at the address, or the connection to it broke off."""


class ToolError(PegboardError):
    """A tool failed in a way that the model should read about; raise it inside a tool."""


class QuestionRejectedError(ToolError):
    """The user did not want to answer a question, or said no to a plan: the turn ends."""


class AbortedError(PegboardError):
    """The user stopped the turn."""

    exit_code = 130


def _beginning(name: str) -> str:
    """Shorten a long name to its beginning."""
    return name if len(name) <= SHOWN_CHARACTERS else f"{name[:SHOWN_CHARACTERS]}…"
