"""Events in the protocol's form."""

import json

from pegboard.schema.event import Custom, Event, PermissionAsked
from pegboard.schema.session import PermissionRequest
from pegboard_plugins.server.wireviews import encode_event


def test_an_event_has_the_protocol_s_json() -> None:
    request = PermissionRequest(
        id="per_1", session_id="ses_1", permission="bash", patterns=("ls",), metadata={}, always=()
    )

    assert json.loads(encode_event(Event(properties=PermissionAsked(request=request)))) == {
        "type": "permission.asked",
        "properties": {
            "id": "per_1",
            "sessionID": "ses_1",
            "permission": "bash",
            "patterns": ["ls"],
            "metadata": {},
            "always": [],
        },
    }
    assert json.loads(encode_event(Event(properties=Custom(name="x.y", data={"a": 1}), seq=7))) == {
        "id": "evt_00000000000000000000000007",
        "type": "x.y",
        "properties": {"a": 1},
    }
