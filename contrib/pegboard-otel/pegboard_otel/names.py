"""The names of the GenAI conventions, all of which are still in development.

The names follow OpenTelemetry's repository semantic-conventions-genai, because the Python packages
contain older names.
"""

SCHEMA_URL = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"

OPERATION = "gen_ai.operation.name"
AGENT_NAME = "gen_ai.agent.name"
AGENT_VERSION = "gen_ai.agent.version"
CONVERSATION = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
TEMPERATURE = "gen_ai.request.temperature"
TOP_P = "gen_ai.request.top_p"
MAX_TOKENS = "gen_ai.request.max_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE = "gen_ai.usage.cache_write.input_tokens"
REASONING = "gen_ai.usage.reasoning.output_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
ERROR_TYPE = "error.type"

INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

PROVIDERS = {"gemini": "gcp.gemini", "litellm": "litellm"}
"""Pegboard's ids of providers that the conventions have other names for."""

MODEL_DURATION = "gen_ai.client.inference.duration"
MODEL_FIRST_CHUNK = "gen_ai.client.inference.time_to_first_chunk"
MODEL_CHUNK = "gen_ai.client.inference.time_per_output_chunk"
AGENT_DURATION = "gen_ai.invoke_agent.duration"
AGENT_MODEL_CALLS = "gen_ai.invoke_agent.inference_calls"
AGENT_TOOL_CALLS = "gen_ai.invoke_agent.tool_calls"
TOOL_DURATION = "gen_ai.execute_tool.duration"
COUNTERS = {
    INPUT_TOKENS: "gen_ai.client.inference.usage.input_tokens",
    OUTPUT_TOKENS: "gen_ai.client.inference.usage.output_tokens",
    CACHE_READ: "gen_ai.client.inference.usage.cache_read.input_tokens",
    CACHE_WRITE: "gen_ai.client.inference.usage.cache_write.input_tokens",
    REASONING: "gen_ai.client.inference.usage.reasoning.output_tokens",
}
"""The counters of tokens, by the attribute of a span that has the same number."""
SIZES = {
    INPUT_TOKENS: "gen_ai.client.inference.operation.input_tokens",
    OUTPUT_TOKENS: "gen_ai.client.inference.operation.output_tokens",
}
"""The histograms of tokens of one request, likewise."""

OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"
"""The variable with the conventions that are wanted, separated by commas."""
DUPLICATE = "gen_ai_dup"
"""Its word for the old names in addition to the new ones, as `http/dup` is that of HTTP's."""
OLD_CACHE_WRITE = "gen_ai.usage.cache_creation.input_tokens"
OLD_TOKENS = "gen_ai.client.token.usage"
OLD_USAGE_KIND = "gen_ai.token.type"
OLD_USAGE_KINDS = {INPUT_TOKENS: "input", OUTPUT_TOKENS: "output"}
OLD_SECONDS = {
    MODEL_DURATION: "gen_ai.client.operation.duration",
    MODEL_FIRST_CHUNK: "gen_ai.client.operation.time_to_first_chunk",
    MODEL_CHUNK: "gen_ai.client.operation.time_per_output_chunk",
}
"""The names of the general conventions, 1.41 to 1.44."""

HOOK = "pegboard.hook"
HOOK_NAME = "pegboard.hook.name"
HOOK_PLUGIN = "pegboard.hook.plugin"
HOOK_CHANGED = "pegboard.hook.changed"

SECONDS = tuple(0.01 * 2**power for power in range(14))
TOKENS = tuple(float(4**power) for power in range(14))
CALLS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
"""The limits of the buckets of histograms: 0.01 to 81.92 s, 1 to 67,108,864 tokens."""
