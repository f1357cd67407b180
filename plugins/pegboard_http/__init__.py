"""What provider plugins share: a model behind HTTP, in a wire format; answers and JSON as events.

A plugin writes the wire format. Each name is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard_http.answerblocks import AnswerBlock as AnswerBlock
    from pegboard_http.answerblocks import AnswerBlocks as AnswerBlocks
    from pegboard_http.answerblocks import AnswerKind as AnswerKind
    from pegboard_http.answercalls import AnswerCalls as AnswerCalls
    from pegboard_http.answercalls import unique_id as unique_id
    from pegboard_http.askedwait import asked_wait_s as asked_wait_s
    from pegboard_http.certificates import CERTIFICATES_HINT as CERTIFICATES_HINT
    from pegboard_http.certificates import tls_context as tls_context
    from pegboard_http.client import untrusted_issuer as untrusted_issuer
    from pegboard_http.encoding import count_in as count_in
    from pegboard_http.encoding import decode_json as decode_json
    from pegboard_http.encoding import encode_json as encode_json
    from pegboard_http.encoding import forgiven as forgiven
    from pegboard_http.encoding import mapping_in as mapping_in
    from pegboard_http.encoding import media_bytes as media_bytes
    from pegboard_http.encoding import media_inputs as media_inputs
    from pegboard_http.encoding import media_kind as media_kind
    from pegboard_http.encoding import note_instead as note_instead
    from pegboard_http.encoding import snake_case as snake_case
    from pegboard_http.encoding import valid_id as valid_id
    from pegboard_http.finishwords import finish_of as finish_of
    from pegboard_http.httpprovider import AnswerReader as AnswerReader
    from pegboard_http.httpprovider import Endpoint as Endpoint
    from pegboard_http.httpprovider import ErrorFrameError as ErrorFrameError
    from pegboard_http.httpprovider import Fetch as Fetch
    from pegboard_http.httpprovider import Framing as Framing
    from pegboard_http.httpprovider import HttpProvider as HttpProvider
    from pegboard_http.httpprovider import MediaLimits as MediaLimits
    from pegboard_http.httpprovider import Post as Post
    from pegboard_http.httpprovider import WireFormat as WireFormat
    from pegboard_http.httpprovider import endpoints as endpoints
    from pegboard_http.keyadvice import key_advice as key_advice
    from pegboard_http.keyadvice import required_key as required_key
    from pegboard_http.overflow import is_overflow as is_overflow
    from pegboard_http.proxies import Proxy as Proxy
    from pegboard_http.proxies import proxy_for as proxy_for
    from pegboard_http.publicaddress import is_public_address as is_public_address
    from pegboard_http.refusals import says as says
    from pegboard_http.sentmedia import SentMedia as SentMedia
    from pegboard_http.toolrefusal import refused_keyword as refused_keyword
    from pegboard_http.toolrefusal import refused_tools as refused_tools
    from pegboard_http.writtencalls import WrittenCalls as WrittenCalls
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
