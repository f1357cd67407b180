"""The tools with schemas that a provider rejects, found in the words of its error."""

import re
from collections.abc import Iterator, Sequence

from pegboard.providers import ToolDefinition

_SUBJECT = r"schema|parameters"
_PLACES = (
    r"function_?declarations\[(\d+)\]",  # Gemini
    r"(?<!\w)tools(?:\[(\d+)\](?!\.function_?decl)|\.(\d+)\b)",  # OpenAI; Anthropic
    r'"tools",\s*(\d+)',  # the `loc` of FastAPI: vLLM, Mistral
)
_NAMES = (
    r"(?:function|tool)\b[^'\"`\n]{0,20}['\"`]([\w.-]+)['\"`]",  # OpenAI, DeepSeek, xAI
    r"['\"`]([\w.-]+)['\"`] function_?declaration",  # Vertex AI
    r"\bfor (?:function|tool) ([\w.-]*\w)",  # Groq
)
_KEYWORDS = (
    *("oneOf", "anyOf", "allOf", "dependentRequired", "dependentSchemas", "patternProperties"),
    *("propertyNames", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
    *("minProperties", "maxProperties", "prefixItems", "minContains", "maxContains"),
    *("uniqueItems", "additionalItems", "minItems", "maxItems", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minimum", "maximum", "minLength", "maxLength", "const"),
    *("enum", "nullable", "$schema", "$id", "$ref", "$defs", "items"),
)
"""Keywords of JSON Schema that are no words of a sentence, in the order of what they tell."""
_WORDS = ("not", "if", "contains", "pattern", "format", "default", "type", "required", "properties")
"""Those that are: they count in quotes, or at the end of a path."""


def refused_tools(
    texts: str, tools: Sequence[ToolDefinition], *, body: str = ""
) -> tuple[str, ...]:
    """Return the names of the tools with a schema that the provider's error rejects.

    An error gives a tool's name, or its index in the request. `texts` are the strings in the error,
    and `body` is the error as JSON. `tools` are the tools of the request, in order. The result has
    the same order and is empty if the error does not mention a schema.
    """
    if re.search(_SUBJECT, texts, re.IGNORECASE) is None:
        return ()
    names = [tool.name for tool in tools]
    found = {*_placed(f"{texts}\n{body}", names), *_named(texts, names)}
    return tuple(name for name in names if name in found)


def refused_keyword(texts: str) -> str:
    """Return the JSON Schema keyword that an error names, or ""."""
    patterns = {name: rf"(?<![\w$]){re.escape(name)}(?!\w)" for name in _KEYWORDS}
    patterns |= {name: rf"['\"`]{name}['\"`](?!:)|\.{name}\b" for name in _WORDS}
    return next((name for name, each in patterns.items() if re.search(each, texts)), "")


def _placed(body: str, names: Sequence[str]) -> Iterator[str]:
    for pattern in _PLACES:
        for place in re.finditer(pattern, body, re.IGNORECASE):
            number = int(next(filter(None, place.groups())))
            if number < len(names):
                yield names[number]


def _named(body: str, names: Sequence[str]) -> Iterator[str]:
    for pattern in _NAMES:
        for found in re.finditer(pattern, body, re.IGNORECASE):
            if found[1] in names:
                yield found[1]
