"""Tool calls that a model writes as text, and that its server does not parse."""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

BESIDE_TEXT = (
    "The model wrote a tool call as text, and it was not made: the server does not read the calls"
    " of this model. Start the server with the model's own template and tool parser, such as"
    " `llama-server --jinja` or `vllm serve --enable-auto-tool-choice --tool-call-parser NAME`."
)
_BAR, _GAP = "\uff5c", "\u2581"
"""The letters in DeepSeek's tokens: a full-width vertical line, and a block for a space."""
_DEEPSEEK_CALLS = f"<{_BAR}tool{_GAP}calls{_GAP}"
_DEEPSEEK_CALL = f"<{_BAR}tool{_GAP}call{_GAP}"
_DEEPSEEK_SEP = f"<{_BAR}tool{_GAP}sep{_BAR}>"
_MARKS = (
    "<tool_call>",  # Hermes, Qwen, GLM
    "<function=",  # Llama, Qwen Coder
    "[TOOL_CALLS]",  # Mistral
    "<|tool_calls_section_begin|>",  # Kimi
    "<|tool_call_begin|>",
    f"{_DEEPSEEK_CALLS}begin",
    f"{_DEEPSEEK_CALL}begin",
    "<function_calls>",  # in the form of Anthropic's older models
    "<minimax:tool_call>",  # MiniMax
    "<invokename=",
    "<|python_tag|>",  # Llama
    '{"name":',
    '{"type":"function"',
    '```json{"name":',
    '```{"name":',
    "```tool_call",
)
"""What an answer begins with that may be a call, without its spaces."""
_END_TOKENS = ("<|eom_id|>", "<|eot_id|>", "<|im_end|>")
_HEAD_LETTERS = 200
_BETWEEN = re.compile(
    rf"\s+|<\|tool_calls_section_(?:begin|end)\|>|{_DEEPSEEK_CALLS}(?:begin|end){_BAR}>"
    r"|</?function_calls>|</?minimax:tool_call>|<\|python_tag\|>"
    r"|</tool_call>(?=\s*$)"
)
_NAME = r"(?P<name>[\w.:-]{1,200})"
_BODY = r"(?P<body>.*?)"
_FENCE = "```"
_WRITTEN = (
    r"<tool_call>\s*(?P<call>\{.*?\})\s*(?:</tool_call>|$)",
    rf"(?:<tool_call>\s*)?<function={_NAME}>{_BODY}</function>(?:\s*</tool_call>)?",
    rf"<tool_call>\s*{_NAME}\s*(?P<body>(?:<arg_key>.*?)?)</tool_call>",
    r"\[TOOL_CALLS\]\s*(?P<call>\[\s*\{.*\}\s*\])\s*$",
    rf"\[TOOL_CALLS\]\s*{_NAME}\s*(?:\[CALL_ID\]\w*)?\s*(?:\[ARGS\])?{_BODY}(?=\[TOOL_CALLS\]|$)",
    rf"<\|tool_call_begin\|>\s*{_NAME}\s*<\|tool_call_argument_begin\|>{_BODY}<\|tool_call_end\|>",
    (
        rf"{_DEEPSEEK_CALL}begin{_BAR}>(?:function{_DEEPSEEK_SEP})?{_NAME}(?:{_DEEPSEEK_SEP}|\n)"
        rf"\s*(?:{_FENCE}json)?{_BODY}(?:{_FENCE})?\s*{_DEEPSEEK_CALL}end{_BAR}>"
    ),
    rf'<invoke name="{_NAME}">{_BODY}</invoke>',
    rf"{_FENCE}(?:json|tool_call)?\s*(?P<call>\{{.*\}})\s*{_FENCE}\s*$",
    r"(?P<call>\{.*\})\s*$",
)
_FORMS = tuple(re.compile(form, re.DOTALL) for form in _WRITTEN)
_PARAMETERS = re.compile(
    r"<parameter=(?P<a>[^>]+)>(?P<b>.*?)</parameter>"
    r'|<parameter name="(?P<c>[^"]+)"[^>]*>(?P<d>.*?)</parameter>'
    r"|<arg_key>(?P<e>.*?)</arg_key>\s*<arg_value>(?P<f>.*?)</arg_value>",
    re.DOTALL,
)
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_OTHERS = ("name", "id", "type", *_ARGUMENTS)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A tool call as the model wrote it; `arguments` is JSON."""

    name: str
    arguments: str


def written_calls(text: str, names: Collection[str]) -> tuple[WrittenCall, ...]:
    """Return the tool calls if the whole text consists of tool calls, else ().

    At least one of them must name one of these tools.
    """
    calls = _calls(text)
    return calls if any(_is_known(call.name, names) for call in calls) else ()


def _calls(text: str) -> tuple[WrittenCall, ...]:
    text = text.rstrip()
    for token in _END_TOKENS:
        text = text.removesuffix(token).rstrip()
    calls: list[WrittenCall] = []
    place = 0
    while place < len(text):
        if between := _BETWEEN.match(text, place):
            place = between.end()
            continue
        for form in _FORMS:
            if (found := form.match(text, place)) and (read := tuple(_calls_in(found))):
                calls += read
                place = found.end()
                break
        else:
            return ()
    return tuple(calls)


class WrittenCalls:
    """The text of an answer, held back as long as it may consist of tool calls.

    `note` is a warning for the user if a call is mixed with text, so that it is not run.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.note = ""
        self._names = names
        self._pieces: list[str] = []
        self._is_held = bool(names)
        self._may_be_call = False

    def feed(self, text: str) -> str:
        """Add a piece of text, and return the text that can be displayed now."""
        if not self._names:
            return text
        self._pieces.append(text)
        if not self._is_held:
            return text
        if self._may_be_call:
            return ""
        whole = "".join(self._pieces)
        head = "".join(whole[:_HEAD_LETTERS].split())
        self._may_be_call = head.startswith(_MARKS)
        self._is_held = self._may_be_call or any(mark.startswith(head) for mark in _MARKS)
        return "" if self._is_held else whole

    def rest(self, *, has_ended: bool) -> tuple[tuple[WrittenCall, ...], str]:
        """Return the tool calls, or else the text that was held back.

        `has_ended` says that the answer was not cut off, so that a call in it is complete.
        """
        whole = "".join(self._pieces)
        self._pieces.clear()
        calls = written_calls(whole, self._names) if has_ended and self._is_held else ()
        self.note = BESIDE_TEXT if has_ended and not calls and _has_call(whole, self._names) else ""
        return calls, whole if self._is_held and not calls else ""


def _has_call(text: str, names: Collection[str]) -> bool:
    """Return whether the text before or after a tag such as `<tool_call>` is tool calls."""
    marks = [mark for mark in _MARKS if "{" not in mark and mark in text]
    parts = [each for m in marks for each in (text[text.find(m, 1) :], text[: text.rfind(m)])]
    is_call = text.lstrip()[:1] in {"<", "["} and bool(_calls(text))
    return is_call or any(written_calls(part, names) for part in parts)


def _calls_in(found: re.Match[str]) -> Iterator[WrittenCall]:
    groups = found.groupdict()
    if "call" in groups:
        value = _json(groups["call"])
        calls = [_from_json(each) for each in (value if isinstance(value, list) else [value])]
        yield from filter(None, calls if all(calls) else ())
    elif arguments := _arguments(groups["body"].strip()):
        yield WrittenCall(groups["name"], arguments)


def _arguments(body: str) -> str:
    """Return the arguments as JSON; "" if the body has another format."""
    if isinstance(_json(body), dict):
        return body
    if _PARAMETERS.sub("", body).strip():
        return ""
    pairs = ([each for each in row if each] for row in _PARAMETERS.findall(body))
    # a line break after a parameter's tag and before its closing tag is not the value's
    values = {k.strip(): "".join(v).removeprefix("\n").removesuffix("\n") for k, *v in pairs}
    return json.dumps(values, ensure_ascii=False)


def _from_json(value: object) -> WrittenCall | None:
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not value.keys() <= {*_OTHERS}:
        return None
    given = [value[key] for key in _ARGUMENTS if key in value]
    if not isinstance(name := value.get("name"), str) or len(given) != 1:
        return None
    arguments = given[0] if isinstance(given[0], str) else json.dumps(given[0], ensure_ascii=False)
    return WrittenCall(name, arguments) if isinstance(_json(arguments), dict) else None


def _is_known(name: str, names: Collection[str]) -> bool:
    return re.sub(r"^functions\.|:\d+$", "", name) in names


def _json(text: str) -> object:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
