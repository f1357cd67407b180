"""The sentence, code and type of an error, in the shapes of many servers and in one of its own."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import ProviderAuthError, ProviderError
from pegboard.http import (
    Endpoint,
    ErrorBody,
    ErrorFrameError,
    HttpProvider,
    Post,
    WireFormat,
    decode_json,
)
from pegboard.http.errorbody import read_body, texts_of
from pegboard.schema.model import Model
from support.models import model_server as ms
from support.models.keyed import keys_of
from support.models.provider_run import request_for


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            '{"error": {"message": "no", "type": "t", "code": "c"}}',
            ErrorBody(message="no", code="c", type="t"),
        ),
        (
            '{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}',
            ErrorBody(message="busy", type="overloaded_error"),
        ),
        (
            '[{"error": {"code": 503, "message": "The model is overloaded."}}]',
            ErrorBody(message="The model is overloaded."),
        ),
        ('{"error": "no such model"}', ErrorBody(message="no such model")),
        ('{"detail": [{"msg": "field required"}]}', ErrorBody(message="field required")),
        ('{"errors": [{"message": "no", "code": 7}]}', ErrorBody(message="no")),
        ('{"error_code": 17, "error_msg": "limit"}', ErrorBody(message="limit")),
        ('{"base_resp": {"status_code": 1004, "status_msg": "login"}}', ErrorBody(message="login")),
        ('{"Message": "expired", "__type": "E"}', ErrorBody(message="expired")),
        ('{"title": "Gone", "type": "about:blank"}', ErrorBody(message="Gone", type="about:blank")),
        ('{"error": {"code": "model_gone"}}', ErrorBody(message="model_gone", code="model_gone")),
        (
            "<html><title>Bad gateway</title>",
            ErrorBody(message="an HTML page titled 'Bad gateway'"),
        ),
        ("upstream  failed\n", ErrorBody(message="upstream failed")),
        ("{}", ErrorBody()),
        ("", ErrorBody()),
    ],
)
def test_an_error_is_read_in_the_usual_shapes(body: str, found: ErrorBody) -> None:
    assert read_body(body) == found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "x"]), inner)
    ),
    max_leaves=8,
)


@given(body=st.text() | JSON.map(json.dumps))
def test_any_body_is_read(body: str) -> None:
    found = read_body(body, lambda value: ErrorBody(message=value["fault"]["text"]))

    assert isinstance(texts_of(body, found), str)


class Reader:
    """A reader of frames of which each is an error."""

    finished = False

    def read(self, frame: bytes) -> Any:
        raise ErrorFrameError(decode_json(frame))

    def end(self) -> Any:
        return ()


def own(value: Any) -> ErrorBody:
    fault = value["fault"]
    return ErrorBody(message=fault["text"], code=str(fault["number"]))


async def failed(*answer: ms.Answer) -> ProviderError:
    wire = WireFormat(
        encode=lambda request, endpoint, key: Post(endpoint.at("ask"), {}, b"{}"),
        reader=lambda request: Reader(),
        read_error=own,
        meanings={"refused-key": "^4711$", "throttled": "^4712$"},
    )
    async with ms.ModelServer(ms.in_order(answer)) as server:
        endpoint = Endpoint(id="house", name="House", url=server.url)
        provider = HttpProvider(endpoint, lambda _: wire, environ={}, keys=keys_of({}, {}))
        model = provider.resolve("m")
        assert isinstance(model, Model)
        try:
            async for _ in provider.stream(request_for(model)):
                pass
        except ProviderError as error:
            return error
        finally:
            await provider.aclose()
    pytest.fail("no error")


@pytest.mark.parametrize(
    ("fault", "kind", "text", "retryable"),
    [
        ({"text": "the cellar is full", "number": 1}, ProviderError, "the cellar is full", False),
        ({"text": "who are you", "number": 4711}, ProviderAuthError, "who are you", False),
        ({"text": "slower, please", "number": 4712}, ProviderError, "slower, please", True),
    ],
)
async def test_a_provider_reads_errors_of_its_own_shape(
    fault: Any, kind: type[ProviderError], text: str, retryable: bool
) -> None:
    body = json.dumps({"fault": fault, "request": {"text": "invalid api key"}}).encode()
    frame = json.dumps({"fault": fault}).encode()
    head = {"content-type": "application/json", "content-length": str(len(body))}
    refused = await failed([ms.Status(code=400, headers=head), body])
    broken = await failed([b"data: " + frame + b"\n\n"])

    assert (type(refused), refused.retryable) == (kind, retryable)
    assert f"house{': ' if kind is ProviderError else ' '}" in str(refused)
    for error in (refused, broken):
        assert text in str(error)
        assert "fault" not in str(error)


async def test_an_error_in_another_shape_is_read_as_usual() -> None:
    body = b'{"error": {"message": "the proxy says no"}}'
    head = {"content-type": "application/json", "content-length": str(len(body))}

    error = await failed([ms.Status(code=403, headers=head), body])

    assert "the proxy says no" in str(error)
