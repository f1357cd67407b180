"""The texts of vendors for a request that is too long, and those that only look so."""

import json

import pytest

from pegboard.errors import ContextOverflowError, ProviderError
from pegboard.http import is_overflow
from pegboard.http.overflow import OVERFLOWS
from pegboard.http.refusals import Refusals
from pegboard.http.wireformat import Endpoint, Meaning

TEXTS = [
    (
        "OpenAI, code and chat completions",
        (
            "This model's maximum context length is 128000 tokens. However, your"
            " messages resulted in 130000 tokens. Please reduce the length of the"
            " messages."
        ),
    ),
    (
        "OpenAI, Responses API",
        (
            "Your input exceeds the context window of this model. Please adjust your input and try"
            " again."
        ),
    ),
    (
        "OpenAI, a string of over 10 MB",
        (
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length"
            " 10485760, but got a string with length 11000000 instead."
        ),
    ),
    (
        "OpenAI and Groq, over a minute's tokens at once",
        (
            "Request too large for gpt-4o in organization org-1 on tokens per min"
            " (TPM): Limit 30000, Requested 40000. The input or output tokens must be"
            " reduced in order to run successfully."
        ),
    ),
    (
        "OpenAI and Groq, over a minute's tokens at once",
        (
            "Request too large for model `llama-3.3-70b` in organization `org_1` on"
            " tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your"
            " message size and try again."
        ),
    ),
    ("Anthropic", "prompt is too long: 213462 tokens > 200000 maximum"),
    (
        "Anthropic",
        (
            "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease"
            " input length or `max_tokens` and try again"
        ),
    ),
    ("Anthropic, over 32 MB", "Request exceeds the maximum size"),
    (
        "Google Gemini API",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    ),
    (
        "Google Vertex AI",
        (
            "Unable to submit request because the input token count is 1234567 but"
            " model only supports up to 1048576. Reduce the input token count and try"
            " again."
        ),
    ),
    ("Amazon Bedrock", "Input is too long for requested model."),
    (
        "Amazon Bedrock",
        (
            "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token"
            " count: 9000"
        ),
    ),
    (
        "Amazon Nova",
        (
            "Input Tokens Exceeded: Number of input tokens exceeds maximum length."
            " Please update the input to try again."
        ),
    ),
    (
        "Mistral",
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model"
            " with 32768 maximum context length"
        ),
    ),
    (
        "xAI",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    ),
    ("DeepSeek and Groq", "Please reduce the length of the messages or completion."),
    (
        "Moonshot Kimi",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 271000)",
    ),
    ("Z.ai and Zhipu, code 1261", "Prompt exceeds max length"),
    ("Z.ai and Zhipu, code 1261", "Prompt 超长"),
    ("Z.ai, as a code", "model_context_window_exceeded"),
    (
        "Alibaba Qwen (DashScope)",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
    ),
    ("MiniMax", "invalid params, context window exceeds limit (2013)"),
    ("Baidu Qianfan", "Prompt tokens too long"),
    ("ByteDance Doubao (Ark)", "Total tokens of image and text exceed max message tokens."),
    (
        "SiliconFlow",
        "length of prompt_tokens (163280) must be less than max_seq_len (32768).",
    ),
    ("Baichuan and others, in Chinese", "输入长度超过模型上限"),
    (
        "Cohere",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.",
    ),
    (
        "Together AI and SGLang",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    ),
    (
        "SGLang",
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
    ),
    ("Fireworks AI", "The prompt is too long: 140000, model maximum context length: 131071"),
    ("GitHub Copilot", "prompt token count of 130000 exceeds the limit of 128000"),
    ("GitHub Models", "Request body too large for gpt-4o model. Max size: 8000 tokens."),
    (
        "IBM watsonx",
        "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
    ),
    ("Snowflake Cortex", "max tokens of 128000 exceeded"),
    (
        "Cloudflare Workers AI",
        (
            "The estimated number of input and maximum output tokens (8500) exceeded this model"
            " context window limit (8000)."
        ),
    ),
    (
        "DeepInfra and Poolside",
        "Requested input length 40000 exceeds maximum input length 32768",
    ),
    ("DeepInfra and Poolside", "Input length 9000 exceeds the maximum allowed input length"),
    ("LiteLLM", "litellm.ContextWindowExceededError: the upstream refused"),
    (
        "vLLM, before 0.12",
        (
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make"
            " sure that `max_model_len` is no smaller than the number of text tokens."
        ),
    ),
    (
        "vLLM, from 0.12",
        (
            "You passed 5001 input tokens and requested 1000 output tokens. However,"
            " the model's context length is only 4096 tokens, resulting in a maximum"
            " input length of 3096 tokens."
        ),
    ),
    (
        "llama.cpp",
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
    ),
    ("llama-cpp-python", "Requested tokens (5000) exceed context window of 4096"),
    (
        "LM Studio",
        (
            "The number of tokens to keep from the initial prompt is greater than the"
            " context length. Try to load the model with a larger context length, or"
            " provide a shorter input"
        ),
    ),
    (
        "LM Studio",
        (
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is"
            " loaded with context length of only 4096 tokens, which is not enough."
        ),
    ),
    (
        "LM Studio",
        (
            "Reached context length of 4096 tokens with model (arch: qwen3) that does not currently"
            " support mid-generation context overflow."
        ),
    ),
    ("Ollama", "prompt too long; exceeded max context length by 12 tokens"),
    ("Ollama", "the input length exceeds the context length"),
    (
        "Hugging Face TGI",
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <="
            " 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`"
        ),
    ),
    (
        "Hugging Face TGI",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
    ),
    (
        "TensorRT-LLM",
        "Prompt length (5000) exceeds maximum input length (4096). Set log level to info.",
    ),
    (
        "MLX servers",
        "Prompt too long: 41911 tokens exceeds max context window of 32768 tokens",
    ),
    ("any", "Prompt has 5000 tokens, but the configured context size is 4096 tokens"),
    ("any", "Prompt exceeds maximum context length"),
]
CODES = [
    "context_length_exceeded",
    "string_above_max_length",
    "request_too_large",
    "model_context_window_exceeded",
    "tokens_too_long",
    "OutofContextError",
    "model_max_prompt_tokens_exceeded",
    "tokens_limit_reached",
    "exceed_context_size_error",
    "prompt_too_long",
]
THROTTLES = [
    (400, "ThrottlingException", "Too many tokens, please wait before trying again."),
    (400, "", "Throttling error: Too many tokens, please wait before trying again."),
    (503, "", "Too many tokens per day, please wait before trying again."),
    (400, "rate_limit_error", "token limit exceeded"),
    (403, "rate_limited", "You have exceeded a rate limit. Please retry your request again later."),
    (429, "", "Too many tokens"),
    (
        429,
        "rate_limit_exceeded",
        (
            "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used"
            " 29000, Requested 2000. Please try again in 2s."
        ),
    ),
    (
        429,
        "rate_limit_error",
        (
            "This request would exceed your organization's rate limit of 30,000 input tokens per"
            " minute"
        ),
    ),
]
OTHERS = [
    "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens",
    "max_tokens is too large: 64000. This model supports at most 16384 completion tokens",
    "The model `m` does not exist",
    "tools.0.description: string is too long",
]


def _refusals() -> Refusals:
    return Refusals(Endpoint(id="test", name="Test", url="http://127.0.0.1"), {})


def _body(message: str, code: str = "") -> str:
    return json.dumps({"error": {"message": message, "code": code}})


@pytest.mark.parametrize(("vendor", "message"), TEXTS)
def test_a_vendor_s_text_for_a_request_that_is_too_long_is_an_overflow(
    vendor: str, message: str
) -> None:
    refusals = _refusals()

    assert isinstance(refusals.refused(400, {}, _body(message)), ContextOverflowError)
    assert isinstance(refusals.in_stream({"message": message}), ContextOverflowError)
    assert isinstance(refusals.refused(400, {}, message), ContextOverflowError)


def test_each_vendor_of_the_table_has_a_text() -> None:
    assert {vendor for vendor, _ in TEXTS} == OVERFLOWS.keys()


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_enough(code: str) -> None:
    error = _refusals().refused(400, {}, _body("no", code))

    assert isinstance(error, ContextOverflowError)


def test_the_status_413_is_enough() -> None:
    assert isinstance(_refusals().refused(413, {}, ""), ContextOverflowError)


@pytest.mark.parametrize(("status", "code", "message"), THROTTLES)
def test_a_throttle_is_tried_again_and_is_no_overflow(status: int, code: str, message: str) -> None:
    error = _refusals().refused(status, {}, _body(message, code))

    assert (type(error), error.retryable) == (ProviderError, True)


@pytest.mark.parametrize(("status", "code", "message"), THROTTLES)
def test_a_throttle_inside_a_stream_is_tried_again(status: int, code: str, message: str) -> None:
    error = _refusals().in_stream({"type": code, "message": message, "code": status})

    assert (type(error), error.retryable) == (ProviderError, True)


@pytest.mark.parametrize("message", OTHERS)
def test_another_refusal_is_no_overflow(message: str) -> None:
    error = _refusals().refused(400, {}, _body(message))

    assert (type(error), error.retryable) == (ProviderError, False)


def test_the_request_that_a_server_repeats_says_nothing_of_the_error() -> None:
    found = {
        "msg": "Field required",
        "loc": ["body"],
        "input": {"messages": ["prompt is too long"]},
    }

    error = _refusals().refused(422, {}, json.dumps({"detail": [found]}))

    assert type(error) is ProviderError


def test_a_server_s_own_expression_counts() -> None:
    own: dict[Meaning, str] = {"overflow": "scroll is full", "throttled": "ink is wet"}

    assert is_overflow("the scroll is full", None, own)
    assert not is_overflow("the scroll is full: the ink is wet", None, own)
    assert not is_overflow("the scroll is full")
