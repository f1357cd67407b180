"""What a provider of models takes and gives: a request, and the events of the answer."""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard.contract.providers import Call as Call
    from pegboard.contract.providers import Content as Content
    from pegboard.contract.providers import FinishReason as FinishReason
    from pegboard.contract.providers import Key as Key
    from pegboard.contract.providers import Keys as Keys
    from pegboard.contract.providers import Media as Media
    from pegboard.contract.providers import ModelMessage as ModelMessage
    from pegboard.contract.providers import ModelRequest as ModelRequest
    from pegboard.contract.providers import Provider as Provider
    from pegboard.contract.providers import Reasoning as Reasoning
    from pegboard.contract.providers import ReasoningDelta as ReasoningDelta
    from pegboard.contract.providers import ReasoningEnd as ReasoningEnd
    from pegboard.contract.providers import ReasoningStart as ReasoningStart
    from pegboard.contract.providers import Result as Result
    from pegboard.contract.providers import StreamEvent as StreamEvent
    from pegboard.contract.providers import StreamFinish as StreamFinish
    from pegboard.contract.providers import Text as Text
    from pegboard.contract.providers import TextDelta as TextDelta
    from pegboard.contract.providers import TextEnd as TextEnd
    from pegboard.contract.providers import TextStart as TextStart
    from pegboard.contract.providers import ToolCall as ToolCall
    from pegboard.contract.providers import ToolDefinition as ToolDefinition
    from pegboard.contract.providers import ToolInputDelta as ToolInputDelta
    from pegboard.contract.providers import ToolInputEnd as ToolInputEnd
    from pegboard.contract.providers import ToolInputStart as ToolInputStart
    from pegboard.contract.providers import Usage as Usage
    from pegboard.contract.providers import key_advice as key_advice
    from pegboard.contract.providers import required_key as required_key
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
