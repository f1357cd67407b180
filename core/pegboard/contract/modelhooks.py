"""The hooks around a request to a model: for the prompt, the request, the model and the answer."""

from collections.abc import Mapping, Sequence

from pegboard.contract.context import FileAccess, SessionView
from pegboard.contract.plugin import hookspec
from pegboard.contract.results import PrefixChange, PrefixLoss
from pegboard.errors import PromptRefusedError
from pegboard.paths import UserFolders
from pegboard.providers import ModelRequest, ToolDefinition
from pegboard.schema.message import Turn
from pegboard.schema.model import Model, ModelFacts
from pegboard.schema.part import FileInput, FilePart, TextInput, TextPart


def _same_message(answer: Turn, before: Turn) -> Turn:
    """Reject a plugin's message if its id, role or session differ from those of `before`."""
    own = (type(before.info), before.info.id, before.info.session_id)
    if (type(answer.info), answer.info.id, answer.info.session_id) != own:
        raise ValueError("another message: its id, role and session must stay")
    seen = set()
    for part in answer.parts:
        if (part.session_id, part.message_id) != (before.info.session_id, before.info.id):
            raise ValueError(f"the part {part.id}, which belongs to another message")
        if part.id in seen:
            raise ValueError(f"two parts with the id {part.id}")
        seen.add(part.id)
    return answer


@hookspec("fold", subject="message", check=_same_message, raises=(PromptRefusedError,), since="0.1")
def chat_message(session: SessionView, message: Turn) -> Turn | None:
    """Change the user's message and its parts, or refuse it with `PromptRefusedError`.

    Called for each prompt. The message is stored as it was sent before that, so that no prompt is
    lost. The returned message replaces it; ids must stay. Fold: `PromptRefusedError` ends the turn
    before a request, and no model reads the message then or later; a plugin that raises another
    error is reported and skipped.

    ```python
    from pegboard import evolve, hookimpl
    from pegboard.schema.message import Turn
    from pegboard.schema.part import Part, TextPart


    @hookimpl
    async def chat_message(message: Turn) -> Turn:
        return evolve(message, parts=tuple(map(spelt_out, message.parts)))


    def spelt_out(part: Part) -> Part:
        if isinstance(part, TextPart):
            return evolve(part, text=part.text.replace("asap", "as soon as possible"))
        return part
    ```
    """


@hookspec("first", since="0.1")
def expand_file(
    session: SessionView, file: FilePart, files: FileAccess
) -> Sequence[FileInput | TextInput] | None:
    """Return the parts that replace a file of a prompt, such as its text, for the model.

    Called for each file of a prompt, after the message is stored and before `chat_message`. The
    first part replaces the file, the others follow the user's input; without an answer the file
    stays as it is. First: a plugin that raises is reported, and the next one is asked.

    - session: its model has not been resolved yet, and can turn out to be unknown.
    - files: `files.note_read` records that the session has read a file.

    ```python
    from pegboard import hookimpl
    from pegboard.schema.part import FilePart, TextInput


    @hookimpl
    async def expand_file(file: FilePart) -> tuple[TextInput, ...] | None:
        if not file.url.startswith("ticket:"):
            return None
        return (TextInput(text=f"{file.url}: the door is stuck.", synthetic=True),)
    ```
    """


@hookspec("fold", subject="messages", since="0.1")
def chat_messages_transform(
    session: SessionView, messages: tuple[Turn, ...]
) -> tuple[Turn, ...] | None:
    """Change the history for one request to a model.

    Called before each request; `session.purpose` is what the request is for. For a request outside
    the conversation, such as one for a title, `messages` is a single turn that is not stored. For a
    summary the hook is called with the history, and then with each text that the compactor sends to
    the model. The returned turns are not stored. A turn that is the same object as before costs
    nothing; a new one is encoded again. Fold: a plugin that raises is reported and skipped, but a
    filter with `@hookimpl(required=True)` stops the request.

    ```python
    from pegboard import evolve, hookimpl
    from pegboard.schema.message import Turn
    from pegboard.schema.part import Part, TextPart


    @hookimpl(required=True)
    async def chat_messages_transform(messages: tuple[Turn, ...]) -> tuple[Turn, ...]:
        return tuple(evolve(turn, parts=tuple(map(redacted, turn.parts))) for turn in messages)


    def redacted(part: Part) -> Part:
        if isinstance(part, TextPart) and "SECRET" in part.text:
            return evolve(part, text=part.text.replace("SECRET", "[gone]"))
        return part
    ```
    """


def _some_text(answer: tuple[str, ...], _: object) -> tuple[str, ...]:
    """Reject a system prompt without text."""
    if not any(piece.strip() for piece in answer):
        raise ValueError("an empty system prompt")
    return answer


@hookspec("fold", subject="system", check=_some_text, since="0.1")
def chat_system_transform(
    session: SessionView, model: Model, system: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Change the system prompt, a tuple of pieces.

    Called before each request to a model, with the pieces of earlier plugins; the agent's own
    prompt is the first. Add a piece that requests for titles and summaries do not need only if
    `session.purpose` is `turn`. Return the same text every time where you can, since providers
    cache the prefix. Fold: a plugin that raises, or returns no text, is reported and skipped.

    ```python
    from pegboard import SessionView, hookimpl


    @hookimpl
    async def chat_system_transform(
        session: SessionView, system: tuple[str, ...]
    ) -> tuple[str, ...]:
        return (*system, f"This is the project {session.worktree.name}.")
    ```
    """


def _same_request(answer: ModelRequest, before: ModelRequest) -> ModelRequest:
    """Reject a new session, new messages, a new answer schema, or an empty system prompt."""
    if answer.session_id != before.session_id:
        raise ValueError("a request of another session")
    if answer.messages is not before.messages:
        raise ValueError("other messages: chat_messages_transform is the hook for that")
    if answer.output_schema != before.output_schema:
        raise ValueError("another schema of the answer, which the engine checks")
    if answer.system is not before.system:
        _some_text(answer.system, None)
    return answer


@hookspec("fold", subject="request", check=_same_request, since="0.1")
def chat_params(session: SessionView, request: ModelRequest) -> ModelRequest | None:
    """Change the parameters of a request: temperature, limits, the provider's options.

    Called before each request to a model, as the last hook. Messages must stay the same object:
    use `chat_messages_transform` to change them, `chat_system_transform` for the system prompt, and
    `tool_definition` for tools. Fold: a plugin that raises is reported and skipped.

    ```python
    from pegboard import evolve, hookimpl
    from pegboard.providers import ModelRequest


    @hookimpl
    async def chat_params(request: ModelRequest) -> ModelRequest:
        return evolve(request, temperature=0.0)
    ```
    """


@hookspec("fold", subject="headers", since="0.1")
def chat_headers(session: SessionView, headers: Mapping[str, str]) -> Mapping[str, str] | None:
    """Change the HTTP headers of a request to a model; the credential's header is not among them.

    Called before each request, before `chat_params`. Fold: a plugin that raises is reported and
    skipped.

    ```python
    from collections.abc import Mapping

    from pegboard import SessionView, hookimpl


    @hookimpl
    async def chat_headers(session: SessionView, headers: Mapping[str, str]) -> dict[str, str]:
        return {**headers, "x-session": session.id}
    ```
    """


@hookspec("fold", subject="text", since="0.1")
def text_complete(session: SessionView, part: TextPart, text: str) -> str | None:
    """Change a text of the model before it is stored.

    Called when a block of text is complete or cut off, and for each answer to a title or another
    request outside the conversation. Users have already seen the raw text arrive; clients then show
    the changed text in its place. Fold: a plugin that raises is reported and skipped.

    ```python
    from pegboard import hookimpl


    @hookimpl
    async def text_complete(text: str) -> str:
        return text.replace("utilize", "use")
    ```
    """


def _some_prompt(answer: str, _: object) -> str:
    """Reject a plugin's prompt that is empty or blank."""
    if not answer.strip():
        raise ValueError("an empty text; None lets the turn end")
    return answer


@hookspec("first", check=_some_prompt, since="0.1")
def turn_end(session: SessionView, answer: Turn) -> str | None:
    """Return a prompt for the model with which the turn goes on instead of ending.

    Called when the model has answered without a further call and no other prompt waits; not after a
    failure, a stop or a rejected permission, nor in the agent's last step. The text is a prompt
    that the user does not see as theirs. A turn goes on like this 8 times in a row at most.
    First: a plugin that raises is reported, and the next one is asked.

    - session: in a subagent's session, `session.info.parent_id` is the id of the caller's session.

    ```python
    from pegboard import SessionView, hookimpl


    @hookimpl
    async def turn_end(session: SessionView) -> str | None:
        if not (session.directory / "TODO.now").exists():
            return None
        return "TODO.now still exists: do what it says, then delete it."
    ```
    """


@hookspec("first", since="0.1")
def prefix_changed(session: SessionView, change: PrefixChange) -> PrefixLoss | None:
    """Return which plugin changed the beginning of a request, so that a provider's cache missed it.

    Called when the tools, the system prompt or the earlier messages of a turn's request are not
    those of the session's request before, to the same model. The answer is stored with the message
    and counts in `pegboard stats`; the user sees its `warning`. First: a plugin that raises is
    reported, and the next one is asked.

    - change: has what each plugin made of both requests.

    ```python
    from pegboard import hookimpl
    from pegboard.plugins import PrefixChange, PrefixLoss


    @hookimpl
    async def prefix_changed(change: PrefixChange) -> PrefixLoss | None:
        names = [[tool.name for tool in each.tools] for each in (change.before, change.after)]
        if names[0] == names[1]:
            return None
        return PrefixLoss(plugin="", hook="", line="", tokens=0, warning="other tools")
    ```
    """


def _same_tool(answer: ToolDefinition, before: ToolDefinition) -> ToolDefinition:
    """Reject a tool definition with another name or permission than `before`."""
    if (answer.name, answer.permission) != (before.name, before.permission):
        raise ValueError(f"the definition of another tool than {before.name}")
    return answer


@hookspec("fold", subject="tool", check=_same_tool, since="0.1")
def tool_definition(session: SessionView, tool: ToolDefinition) -> ToolDefinition | None:
    r"""Change a tool's description and schema as the model reads them.

    Called for each offered tool when a turn begins. Name and permission must stay. Fold: a plugin
    that raises is reported and skipped.

    ```python
    from pegboard import evolve, hookimpl
    from pegboard.providers import ToolDefinition


    @hookimpl
    async def tool_definition(tool: ToolDefinition) -> ToolDefinition | None:
        if tool.name != "read":
            return None
        return evolve(tool, description=f"{tool.description}\nNever read lock files.")
    ```
    """


@hookspec("fold", subject="prompt", since="0.1")
def session_compacting(session: SessionView, prompt: str) -> str | None:
    r"""Change the prompt that requests a summary of the history.

    Called before a session is compacted. Fold: a plugin that raises is reported and skipped.

    ```python
    from pegboard import hookimpl


    @hookimpl
    async def session_compacting(prompt: str) -> str:
        return f"{prompt}\nName every file that was changed."
    ```
    """


@hookspec("first", since="0.1")
def model_resolve(name: str) -> Model | None:
    """Return the model with this name.

    Called when no provider has the id before the slash, or when there is no slash: for aliases,
    and for providers that serve any model. The model's `provider_id` must be that of a registered
    provider. First: a plugin that raises is reported, and the next one is asked.

    ```python
    from pegboard import hookimpl
    from pegboard.schema.model import Model, ModelApi


    @hookimpl
    async def model_resolve(name: str) -> Model | None:
        if name != "fast":
            return None
        api = ModelApi(id="gpt-6.1-mini")
        return Model(id=api.id, provider_id="openai", name="Fast", api=api)
    ```
    """


@hookspec("first", since="0.1")
def model_facts(provider: str, model: str, places: UserFolders) -> ModelFacts | None:
    """Return facts about a model: its window, price, abilities and request parameters.

    Called once for each model that is named while the App is open. The answer fills in what the
    provider leaves out, and the user's configuration of the model overrides it. First: a plugin
    that raises is reported, and the next one is asked.

    - provider, model: the two halves of the model's name.
    - places: the user's folders; `places.cache` can hold what was fetched.

    ```python
    from pegboard import hookimpl
    from pegboard.schema.model import ModelFacts, ModelLimit


    @hookimpl
    async def model_facts(provider: str, model: str) -> ModelFacts | None:
        if (provider, model) != ("house", "large"):
            return None
        return ModelFacts(limit=ModelLimit(context=128_000, output=8_000))


    @hookimpl
    async def model_names(provider: str) -> tuple[str, ...]:
        return ("large",) if provider == "house" else ()
    ```
    """


@hookspec("first", since="0.1")
def model_names(provider: str, url: str, places: UserFolders) -> Sequence[str] | None:
    """Return ids of a provider's models, in addition to those that the provider lists.

    Called when models are listed. An id that the provider does not `resolve` is left out. First:
    a plugin that raises is reported, and the next one is asked.

    - url: the address of the provider's server, "" if it is unknown. The user may have moved the
      provider to another server, which has other models.
    - places: the user's folders.

    The example of `model_facts` has a `model_names`, too.
    """
