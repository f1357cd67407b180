"""The errors that callers can act on.

::

    PegboardError
    ├── ConfigError              a config file or key is wrong            (exit 3)
    ├── TrustError               a project's code may not run             (exit 3)
    ├── NotFoundError            an id or name that does not exist        (exit 2)
    ├── ModelNotFoundError       no provider serves this model            (exit 4)
    ├── ProviderError            the model could not be asked             (exit 4)
    │   ├── ProviderAuthError    a key is missing or refused
    │   ├── ContextOverflowError the request is longer than the model reads
    │   └── ToolSchemaError      the provider rejects a tool's schema
    ├── PermissionDeniedError    a rule, a plugin or the user denies it   (exit 5)
    │   ├── PermissionRejectedError   the user rejects it: the turn ends
    │   ├── PermissionCorrectedError  the user says what to do instead
    │   └── PromptRefusedError        a plugin refuses a prompt: no model reads it
    ├── OutputError              an answer does not have its form         (exit 9)
    ├── BudgetError              a limit on money, tokens or steps is hit (exit 6)
    ├── TimeLimitError           a wait took longer than it may           (exit 7)
    ├── PluginError              a plugin cannot be loaded or called      (exit 8)
    │   ├── SignatureError       a tool's parameter cannot be described
    │   └── RequiredHookError    a required hook has failed
    ├── InvalidInputError        input that cannot be used as given       (exit 2)
    ├── SessionBusyError         the session runs a turn already          (exit 1)
    ├── StorageError             the database cannot be used              (exit 1)
    ├── ServerError              a server refused a request               (exit as its cause)
    │   └── ServerUnreachableError    no server answers                   (exit 1)
    ├── ToolError                a tool failed, as the model reads        (exit 1)
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
    """The base of Pegboard's errors; one line says what failed, with the value, and what to do.

    `told` is whether a `session.error` event has reported the error.
    """

    exit_code = 1
    told = False


class ConfigError(PegboardError, ValueError):
    """A config file that cannot be read, or an invalid value of a key in a config file."""

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
    """Code of a project that may not run because the user has not trusted the code."""

    exit_code = 3


class NotFoundError(PegboardError, LookupError):
    """An unknown id or name; `suggestions` are similar ids or names that exist."""

    exit_code = 2

    def __init__(self, kind: str, name: str, *, suggestions: Sequence[str] = ()) -> None:
        hint = f". Did you mean {', '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"{kind} not found: {_beginning(name)}{hint}")
        self.kind = kind
        self.name = name
        self.suggestions = tuple(suggestions)


class ModelNotFoundError(PegboardError, LookupError):
    """A model that no provider serves; `suggestions` are similar names."""

    exit_code = 4

    def __init__(self, name: str, *, suggestions: Sequence[str] = (), hint: str = "") -> None:
        nearest = f" Did you mean {', '.join(suggestions)}?" if suggestions else ""
        way_out = f" {hint}" if hint else " `pegboard models` lists what can be used."
        super().__init__(f"model not found: {_beginning(name)}.{nearest}{way_out}")
        self.name = name
        self.suggestions = tuple(suggestions)


class ProviderError(PegboardError):
    """A failed request to the model, or an answer that broke off.

    `retryable` is the provider's judgement, by default that of the HTTP `status`. `status` is None
    without an HTTP response. `wait_s` is the wait before a retry that the provider asks for.
    Headers and body are as received, without credentials.
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
    """A missing or refused credential; the message names the variable to set, with advice."""


class ContextOverflowError(ProviderError):
    """A request that is longer than the model's context window."""


class ToolSchemaError(ProviderError):
    """The provider's rejection of the schemas of `tools`; `keyword` may be the cause."""

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
    """A request that a rule or a plugin denies, or that no user is present to answer.

    The message is for the model. `advice` tells the user how to allow the call, if possible.
    """

    exit_code = 5

    def __init__(self, text: str, *, advice: str = "") -> None:
        super().__init__(text)
        self.advice = advice


class PermissionRejectedError(PermissionDeniedError):
    """The user's rejection of a permission request; the turn ends after the current step."""


class PermissionCorrectedError(PermissionDeniedError):
    """The user's rejection of a permission request, with other instructions for the model."""


class PromptRefusedError(PermissionDeniedError):
    """A plugin's refusal of a prompt: the turn ends, and no model reads the prompt."""


class OutputError(PegboardError):
    """A final answer without the form of `Prompt.output`, even after `retries` repairs.

    `answer` is its text.
    """

    exit_code = 9

    def __init__(self, message: str, *, answer: str = "", retries: int = 0) -> None:
        super().__init__(message)
        self.answer = answer
        self.retries = retries


class BudgetError(PegboardError):
    """A limit of money, tokens, minutes, steps or tool calls that was reached."""

    exit_code = 6


class TimeLimitError(PegboardError, TimeoutError):
    """A wait that took longer than the time limit."""

    exit_code = 7


class PluginError(PegboardError):
    """A plugin that cannot be loaded, or whose hook failed or returned an invalid value."""

    exit_code = 8

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(f"plugin {plugin}: {message}")
        self.plugin = plugin


class SignatureError(PluginError):
    """A tool or a tool's parameter that cannot be described to a model.

    `parameter` is "" if the error concerns the tool itself.
    """

    def __init__(self, plugin: str, message: str, *, tool: str, parameter: str = "") -> None:
        place = f"tool {tool}, parameter {parameter}" if parameter else f"tool {tool}"
        super().__init__(plugin, f"{place}: {message}")
        self.tool = tool
        self.parameter = parameter


class RequiredHookError(PluginError):
    """A failure of a hook that its plugin marks as required; the operation that called it ends."""


class InvalidInputError(PegboardError, ValueError):
    """Input that cannot be used as given; the message says what would be valid."""

    exit_code = 2


class SessionBusyError(PegboardError):
    """A session that already runs a turn, so that another operation is not possible.

    `kept` is whether the input is stored anyway, for the next prompt. `owner` is the process that
    runs the session, None if unknown.
    """

    def __init__(self, session_id: str, *, kept: bool = False, owner: str | None = None) -> None:
        super().__init__(f"session {session_id} is busy; wait for its turn to end, or abort it")
        self.session_id = session_id
        self.kept = kept
        self.owner = owner

    def __str__(self) -> str:
        end = "; what you sent is kept, and goes with the next prompt" if self.kept else ""
        return f"{super().__str__()}{end}"


class StorageError(PegboardError, OSError):
    """A database that cannot be opened, read or written."""


class ServerError(PegboardError):
    """A request that a server refused, or an unusable response.

    `status` is the HTTP status, None without a response. `name` is the protocol's name of the
    error, and `data` has the server's details. The exit code is that of a local run with this
    error.
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
    """A server that does not answer at its address, or a broken connection to the server."""


class ToolError(PegboardError):
    """A failure of a tool, for the model to read; raise it inside a tool."""


class QuestionRejectedError(ToolError):
    """The user's refusal to answer a question or to accept a plan; the turn ends."""


class AbortedError(PegboardError):
    """A turn that the user or a plugin stopped."""

    exit_code = 130


def _beginning(name: str) -> str:
    """Shorten a long name in an error message to its beginning."""
    return name if len(name) <= SHOWN_CHARACTERS else f"{name[:SHOWN_CHARACTERS]}…"
