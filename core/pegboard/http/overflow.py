"""The error texts with which servers reject a request that is longer than a model's window."""

import re
from collections.abc import Mapping

from pegboard.http.wireformat import Meaning

OVERFLOWS: Mapping[str, str] = {
    "OpenAI, code and chat completions": r"context_length_exceeded|maximum context length",
    "OpenAI, Responses API": r"exceeds the context window",
    "OpenAI, a string of over 10 MB": r"string_above_max_length|string too long\. expected",
    "OpenAI and Groq, over a minute's tokens at once": (
        r"request too large for .{0,200}(must be reduced|reduce your message size)"
    ),
    "Anthropic": r"prompt is too long|input length and `?max_tokens`? exceed context limit",
    "Anthropic, over 32 MB": r"request_too_large|request exceeds the maximum size",
    "Google Gemini API": r"input token count .{0,40}exceeds|exceeds the maximum number of tokens",
    "Google Vertex AI": r"input token count is \d+ but model only supports",
    "Amazon Bedrock": r"input is too long for requested model|too many input tokens",
    "Amazon Nova": r"input tokens exceeded|number of input tokens exceeds",
    "Mistral": r"too large for model with \d+ maximum context",
    "xAI": r"maximum prompt length is \d+",
    "DeepSeek and Groq": r"reduce the length of the (messages|prompt|input)",
    "Moonshot Kimi": r"exceeded model token limit",
    "Z.ai and Zhipu, code 1261": r"prompt exceeds max length|prompt\s*超长",
    "Z.ai, as a code": r"model_context_window_exceeded",
    "Alibaba Qwen (DashScope)": r"range of input length should be",
    "MiniMax": r"context window exceeds limit|token limit exceeded",
    "Baidu Qianfan": r"prompt tokens too long|tokens_too_long|max input characters",
    "ByteDance Doubao (Ark)": r"outofcontext|exceed max message tokens",
    "SiliconFlow": r"length of prompt_tokens .{0,40}must be less than max_seq_len",
    "Baichuan and others, in Chinese": r"(输入|上下文|提示词).{0,12}(超长|过长|超过|超出|超限)",
    "Cohere": r"too many tokens",
    "Together AI and SGLang": r"longer than the model'?s? context length",
    "SGLang": r"requested token count exceeds",
    "Fireworks AI": r"prompt is too long: \d+, model maximum context",
    "GitHub Copilot": (
        r"prompt token count of \d+ exceeds the limit|model_max_prompt_tokens_exceeded"
    ),
    "GitHub Models": r"tokens_limit_reached|request body too large for",
    "IBM watsonx": r"number of input tokens \d+ cannot exceed",
    "Snowflake Cortex": r"max tokens of \d+ exceeded",
    "Cloudflare Workers AI": r"exceeded this model context window limit",
    "DeepInfra and Poolside": r"input length .{0,60}exceed",
    "LiteLLM": r"contextwindowexceeded",
    "vLLM, before 0.12": r"longer than the maximum model length",
    "vLLM, from 0.12": r"context length is only \d+",
    "llama.cpp": r"exceed_context_size|exceeds the available context size",
    "llama-cpp-python": r"exceed context window of",
    "LM Studio": (
        r"initial prompt is greater than the context length|context the overflows"
        r"|reached context length of \d+"
    ),
    "Ollama": r"exceeded max context length|input length exceeds the context length",
    "Hugging Face TGI": r"`?inputs`? (must have less than \d+ tokens|tokens \+ `?max_new_tokens`?)",
    "TensorRT-LLM": r"exceeds maximum input length|exceeds max_seq_len",
    "MLX servers": r"prompt too long|prompt_too_long|exceeds max context window",
    "any": (
        r"(input|prompt|request).{0,40}(is )?too (long|large).{0,40}(token|context|model)"
        r"|context[ _]?(window|length|size|limit).{0,40}exceed"
        r"|exceed.{0,40}context[ _]?(window|length|size|limit)|max_prompt_tokens"
        r"|configured context size is \d+"
    ),
}
"""Expressions, read without regard to case, by the vendor or product that writes so."""
THROTTLED = (
    r"throttl|rate.?limit|too.?many.?requests|please wait|slow.?down|server is busy"
    r"|(tokens|requests|tpm|rpm)( per |/)(second|sec|minute|min|hour|day)"
    r"|(again|retry) (in|after) \d|concurrency.{0,40}(limit|exceed)|限流|速率|频率|频繁"
)
"""The texts for a client that asks too often, or for too much at once: that passes."""
_AT_ONCE = OVERFLOWS["OpenAI and Groq, over a minute's tokens at once"]
_TOO_LARGE = 413
_TOO_MANY = 429


def is_overflow(text: str, status: int | None = None, meanings: Mapping[Meaning, str] = {}) -> bool:
    """Return whether an error says that the request is longer than the model's window.

    `meanings` are additional regular expressions for this server's errors. An error about the rate
    of requests is not an overflow, even if it mentions too many tokens. It is one if a single
    request exceeds the limit per minute.
    """
    if status == _TOO_LARGE or _has(text, _AT_ONCE):
        return True
    if status == _TOO_MANY or _has(text, THROTTLED, meanings.get("throttled", "")):
        return False
    return _has(text, *OVERFLOWS.values(), meanings.get("overflow", ""))


def _has(text: str, *expressions: str) -> bool:
    # Compiled at the first failure (and kept by `re`), not at every start.
    return any(each and re.search(each, text, re.IGNORECASE | re.MULTILINE) for each in expressions)
