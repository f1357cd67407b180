"""What a provider of models takes and gives: a request, and the events of the answer."""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard.providers.provider import Call as Call
    from pegboard.providers.provider import Content as Content
    from pegboard.providers.provider import FinishReason as FinishReason
    from pegboard.providers.provider import Key as Key
    from pegboard.providers.provider import Keys as Keys
    from pegboard.providers.provider import KeyStore as KeyStore
    from pegboard.providers.provider import Media as Media
    from pegboard.providers.provider import ModelMessage as ModelMessage
    from pegboard.providers.provider import ModelRequest as ModelRequest
    from pegboard.providers.provider import Provider as Provider
    from pegboard.providers.provider import Reasoning as Reasoning
    from pegboard.providers.provider import ReasoningDelta as ReasoningDelta
    from pegboard.providers.provider import ReasoningEnd as ReasoningEnd
    from pegboard.providers.provider import ReasoningStart as ReasoningStart
    from pegboard.providers.provider import Result as Result
    from pegboard.providers.provider import StreamEvent as StreamEvent
    from pegboard.providers.provider import StreamFinish as StreamFinish
    from pegboard.providers.provider import Text as Text
    from pegboard.providers.provider import TextDelta as TextDelta
    from pegboard.providers.provider import TextEnd as TextEnd
    from pegboard.providers.provider import TextStart as TextStart
    from pegboard.providers.provider import ToolCall as ToolCall
    from pegboard.providers.provider import ToolDefinition as ToolDefinition
    from pegboard.providers.provider import ToolInputDelta as ToolInputDelta
    from pegboard.providers.provider import ToolInputEnd as ToolInputEnd
    from pegboard.providers.provider import ToolInputStart as ToolInputStart
    from pegboard.providers.provider import Usage as Usage
    from pegboard.providers.provider import key_advice as key_advice
    from pegboard.providers.provider import required_key as required_key
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
