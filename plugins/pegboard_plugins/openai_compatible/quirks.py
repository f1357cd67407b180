"""The differences of servers with OpenAI's chat completions."""

from collections.abc import Mapping

import msgspec


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of a server from others in the fields that it reads.

    `short_ids` is Mistral's rule: nine letters or digits, and no user message straight after a
    tool's. `effort_object` is OpenRouter's `reasoning: {effort}`, `template` says that switches of
    a model's chat template go in `chat_template_kwargs`, `silent_window` that the server, Ollama,
    cuts off what is too long for it and says nothing. `form_with_tools` is OpenAI's: a schema of
    the answer leaves the model its calls, which the grammars of other servers rule out.
    """

    limit_field: str = "max_tokens"
    usage_option: bool = True
    cache_key: bool = False
    short_ids: bool = False
    effort_object: bool = False
    template: bool = False
    silent_window: bool = False
    form_with_tools: bool = False


QUIRKS: Mapping[str, Quirks] = {
    "openai": Quirks(limit_field="max_completion_tokens", cache_key=True, form_with_tools=True),
    "openrouter": Quirks(effort_object=True),
    "mistral": Quirks(usage_option=False, short_ids=True),
    "ollama": Quirks(silent_window=True),
    "lmstudio": Quirks(template=True),
    "vllm": Quirks(template=True),
    "llamacpp": Quirks(template=True),
}
