"""What a provider of models takes and gives: a request, and the events of the answer."""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard.contract.providers import Call as Call
    from pegboard.contract.providers import Content as Content
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
    from pegboard.providers.answerblocks import AnswerBlock as AnswerBlock
    from pegboard.providers.answerblocks import AnswerBlocks as AnswerBlocks
    from pegboard.providers.answerblocks import AnswerKind as AnswerKind
    from pegboard.providers.encoding import count_in as count_in
    from pegboard.providers.encoding import decode_json as decode_json
    from pegboard.providers.encoding import encode_json as encode_json
    from pegboard.providers.encoding import forgiven as forgiven
    from pegboard.providers.encoding import mapping_in as mapping_in
    from pegboard.providers.encoding import media_bytes as media_bytes
    from pegboard.providers.encoding import media_inputs as media_inputs
    from pegboard.providers.encoding import media_kind as media_kind
    from pegboard.providers.encoding import note_instead as note_instead
    from pegboard.providers.encoding import snake_case as snake_case
    from pegboard.providers.encoding import valid_id as valid_id
    from pegboard.providers.httpprovider import HttpProvider as HttpProvider
    from pegboard.providers.httpprovider import endpoints as endpoints
    from pegboard.providers.wireformat import AnswerReader as AnswerReader
    from pegboard.providers.wireformat import Endpoint as Endpoint
    from pegboard.providers.wireformat import ErrorFrameError as ErrorFrameError
    from pegboard.providers.wireformat import Fetch as Fetch
    from pegboard.providers.wireformat import Post as Post
    from pegboard.providers.wireformat import WireFormat as WireFormat
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
