"""The public names of the HTTP client for model servers.

A plugin for a provider writes only the wire format: the encoding of requests and the decoding of
answers.
"""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.http.answerblocks": (
            "AnswerBlock",
            "AnswerBlocks",
        ),
        "pegboard.http.answercalls": (
            "AnswerCalls",
            "unique_id",
        ),
        "pegboard.http.askedwait": ("asked_wait_s",),
        "pegboard.http.encoding": (
            "count_in",
            "decode_json",
            "encode_json",
            "media_inputs",
            "note_instead",
            "valid_id",
        ),
        "pegboard.http.httpprovider": (
            "HttpProvider",
            "endpoints",
        ),
        "pegboard.http.keyadvice": ("required_key",),
        "pegboard.http.overflow": ("is_overflow",),
        "pegboard.http.toolrefusal": (
            "refused_keyword",
            "refused_tools",
        ),
        "pegboard.http.wireformat": (
            "AnswerReader",
            "Endpoint",
            "ErrorBody",
            "ErrorFrameError",
            "Framing",
            "KeyCheck",
            "MediaLimits",
            "Post",
            "WireFormat",
        ),
        "pegboard.kit.hosts": ("is_loopback",),
    },
)
