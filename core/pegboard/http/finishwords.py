"""The words with which servers give the reason for the end of an answer."""

from collections.abc import Mapping

from pegboard.providers import FinishReason

FINISH_WORDS: Mapping[FinishReason, tuple[str, ...]] = {
    "stop": (
        *("stop", "end", "eos", "eos_token", "end_turn", "end_of_turn"),
        *("stop_sequence", "stop_token", "stop_str", "complete", "completed", "done", "normal"),
    ),
    "length": (
        *("length", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_length"),
        *("model_length", "context_length", "token_limit", "model_context_window_exceeded"),
    ),
    "tool-calls": (
        *("tool_calls", "tool-calls", "tool_call", "tool_use", "function_call"),
        "function_calls",
    ),
    "content-filter": (
        *("content_filter", "content-filter", "content_filtered", "contentfilter", "filtered"),
        *("refusal", "refused", "safety", "sensitive", "guardrail_intervened", "guardrail"),
        *("moderation", "recitation", "blocklist", "prohibited_content", "spii", "language"),
        *("image_safety", "image_prohibited_content", "error_toxic", "risk", "violation"),
    ),
    "error": (
        *("error", "network_error", "server_error", "internal_error", "unknown_error", "failed"),
        *("abort", "aborted", "cancel", "cancelled", "canceled", "user_cancel", "interrupted"),
        *("timeout", "time_limit", "insufficient_system_resource", "overloaded"),
        *("malformed_function_call", "unexpected_tool_call", "too_many_tool_calls"),
        *("malformed_model_output", "malformed_tool_use"),
    ),
    "other": ("pause_turn", "other", "null"),
}
"""What vendors write: OpenAI, Anthropic, Gemini, Bedrock, Mistral (`model_length`), Cohere,
Zhipu (`sensitive`, `network_error`), DeepSeek (`insufficient_system_resource`), vLLM and SGLang
(`abort`), Ollama and llama.cpp."""


def finish_of(word: object) -> tuple[FinishReason, str]:
    """Return the finish reason for the word of a server, and a note for the user or "".

    An answer that ends with an error may be requested again. An answer that ends for an unknown
    reason is accepted with a warning.
    """
    if not word:
        return "unknown", ""
    written = str(word)
    name = written.lower()
    reason = next((each for each, words in FINISH_WORDS.items() if name in words), None)
    if reason is None:
        text = f"The model's server ended the answer with {written[:100]!r}, a reason that is not"
        return "other", f"{text} known: the answer may be incomplete."
    return reason, f"the server ended the answer with {written!r}" if reason == "error" else ""
