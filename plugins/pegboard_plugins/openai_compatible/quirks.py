"""The differences of compatible servers from OpenAI's chat completions API."""

from collections.abc import Mapping

import msgspec


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of a server from OpenAI's API.

    - limit_field: the field for the maximum of answer tokens.
    - short_ids: Mistral's ids of nine letters or digits, and its rule that no user message directly
      follows a tool's.
    - effort_object: OpenRouter's form `reasoning: {effort}`.
    - template: switches of a model's chat template go in `chat_template_kwargs`.
    - silent_window: the server (Ollama) cuts off long requests without an error.
    - form_with_tools: a model can call tools although the request has a schema for the answer. On
      servers other than OpenAI's, the schema prevents calls.
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
